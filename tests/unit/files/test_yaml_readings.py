"""YAML that parsers read in different ways is refused, with its cause, its place and a fix."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import Diagnostic, DiagnosticCollector
from reconciler.files.yaml_construct import AMBIGUOUS
from reconciler.files.yaml_loader import parse
from reconciler.model.values import JSON


def problems_of(text: str, lenient: frozenset[str] = frozenset()) -> list[Diagnostic]:
    problems = DiagnosticCollector(lenient=lenient)
    parse(text.encode(), "a.yaml", problems)
    return problems.diagnostics


def the_problem_of(text: str) -> Diagnostic:
    (problem,) = problems_of(text)
    return problem


def value_of(text: str) -> JSON:
    problems = DiagnosticCollector()
    document = parse(text.encode(), "a.yaml", problems)
    assert problems.diagnostics == []
    return document.value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("{?name: W1}", 1, 3),
        ("a: [b, ?x]", 1, 9),
        ('a: "x"# c', 1, 7),
        ("a: 'x'# c", 1, 7),
        ("a: [b]#c", 1, 7),
        ("a: {b: 1}#c", 1, 10),
        ("- &a !!str 'x'#c", 1, 15),
        ("a: #1 lake\nb: 2", 1, 4),
        ("a:\n- #1", 2, 3),
    ],
)
def test_configuration_5_what_readers_interpret_differently_is_an_error_at_its_place(
    text: str, line: int, column: int
) -> None:
    problem = the_problem_of(text)
    assert (problem.code, problem.at.line, problem.at.column) == ("ambiguous-yaml", line, column)
    assert problem.hint


@pytest.mark.parametrize("text", ["a:\n  ! 12", "a: [! 12]"])
def test_configuration_5_a_tag_without_a_name_is_a_tag(text: str) -> None:
    assert the_problem_of(text).code == "unknown-tag"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: [\n  b,\n]", {"a": ["b"]}),
        ('a: "b\n\n  \tc"', {"a": "b\nc"}),
        ("a: [b, # c\n# d\n  e]", {"a": ["b", "e"]}),
        ("a: b#c\nd: 'e' # f", {"a": "b#c", "d": "e"}),
        ("a: &b_1-c [1]\nd: [*b_1-c, e]", {"a": [1], "d": [[1], "e"]}),
        ("a: '! 12'\nb: c ! d & e? * f\n", {"a": "! 12", "b": "c ! d & e? * f"}),
        ("a: [-1, -b, a-, ? b]", {"a": [-1, "-b", "a-", {"b": None}]}),
        ('a: |\n  "b"#\n  [c,\n\n  # d', {"a": '"b"#\n[c,\n\n# d'}),
        ("&a b: *a\nc: 1\n", {"b": "b", "c": 1}),
        ("a: &a b\n*a : 1\n", {"a": "b", "b": 1}),
        ("a: !!str 1\nb: !!int 2\n", {"a": "1", "b": 2}),
        ("a: # daily\nb: ## x\n", {"a": None, "b": None}),
        ("a: #b\n  c: 1\nd: #e\n- 1\n", {"a": {"c": 1}, "d": [1]}),
        ("", None),
    ],
)
def test_yaml_that_is_read_in_one_way_is_accepted(text: str, value: JSON) -> None:
    assert value_of(text) == value


def test_a_commit_with_ambiguous_yaml_can_be_read_if_the_caller_is_lenient() -> None:
    problems = DiagnosticCollector(lenient=AMBIGUOUS)
    assert parse(b"a: [b]#c\n", "a.yaml", problems).value == {"a": ["b"]}
    assert not problems.failed


def test_configuration_6_a_tab_after_a_dash_is_reported_as_a_tab() -> None:
    problem = the_problem_of("a:\n-\thttps://eu.posthog.com\n")
    assert (problem.code, problem.at.line, problem.at.column) == ("tab-indent", 2, 2)


@pytest.mark.parametrize("space", ["\xa0", "\u2003", "\u3000"])
@pytest.mark.parametrize(
    ("text", "line"), [("a:\n_ b: 1\n  c: 2\n", 2), ("a:\n  b: 1\n_ c: 2\n", 3)]
)
def test_configuration_6_a_no_break_space_is_reported_in_its_line(
    text: str, line: int, space: str
) -> None:
    problem = the_problem_of(text.replace("_", space))
    assert (problem.at.line, problem.at.column) == (line, 1)
    assert "space" in f"{problem.message}\n{problem.hint}"


@pytest.mark.parametrize("links", [61, 600])
def test_configuration_12_a_chain_of_merge_keys_may_be_long(links: int) -> None:
    chain = [f"a{n}: &a{n}\n  <<: *a{n - 1}\n  x{n}: {n}\n" for n in range(1, links)]
    value = value_of("a0: &a0 {x0: 0}\n" + "".join(chain))
    assert isinstance(value, dict)
    assert value[f"a{links - 1}"] == {f"x{n}": n for n in range(links)}


def test_a_chain_of_merge_keys_with_many_sources_counts_towards_the_limit_of_values() -> None:
    fields = ", ".join(f"x{number}: 1" for number in range(100))
    chain = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 100)}]}}\n" for n in range(1, 90)]
    codes = {problem.code for problem in problems_of(f"a0: &a0 {{{fields}}}\n" + "".join(chain))}
    assert codes == {"alias-bomb"}


@pytest.mark.parametrize(
    ("text", "column", "fix"),
    [
        ("prefix: {year}/{month}\n", 15, "'{year}/{month}'"),
        ("prefix: {year}/{month} # daily\n", 15, "'{year}/{month}'"),
        ("- [a] b\n", 7, "'[a] b'"),
        ("name: 'Acme's lake'\n", 13, "double quotes"),
        ('name: "A" lake\n', 11, "single quotes"),
    ],
)
def test_text_after_a_value_in_brackets_or_quotes_comes_with_the_quoted_value(
    text: str, column: int, fix: str
) -> None:
    problem = the_problem_of(text)
    assert (problem.code, problem.at.column) == ("bad-yaml", column)
    assert "after the closing" in problem.message
    assert fix in str(problem.hint)


@pytest.mark.parametrize(
    "text",
    [
        "a:\n<<<<<<< HEAD\n  b: 1\n=======\n  b: 2\n>>>>>>> c\n",
        "a: 1\n>>>>>>> c\nb: 2\n",
        "a: 1\r\n=======\r\nb: 2\r\n",
    ],
)
def test_a_conflict_marker_is_one_error_at_its_line(text: str) -> None:
    problem = the_problem_of(text)
    assert (problem.code, problem.at.line) == ("conflict-marker", 2)


@pytest.mark.parametrize("quotes", ["“”", "„“", "‘’", "«»"])
def test_curly_quotes_around_a_text_are_an_error_with_the_fix(quotes: str) -> None:
    problem = the_problem_of(f"a: {quotes[0]}b c{quotes[1]}\n")
    assert (problem.code, problem.at.column) == ("curly-quotes", 4)
    assert "'b c'" in str(problem.hint)
    quoted = f"{quotes[0]}b c{quotes[1]}"
    assert value_of(f"a: '{quoted}'\nd: e {quoted} f\n") == {"a": quoted, "d": f"e {quoted} f"}
