"""YAML that readers take in different ways is refused, with its place and a fix; other YAML is not.

The corpus has more of it, with whole messages; here are the edges of each rule.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import Diagnostic, DiagnosticCollector
from reconciler.files.yaml_construct import AMBIGUOUS
from reconciler.files.yaml_document import Document
from reconciler.files.yaml_loader import parse
from reconciler.model.values import JSON


def problems_of(text: str | bytes) -> list[Diagnostic]:
    problems = DiagnosticCollector()
    parse(text.encode() if isinstance(text, str) else text, "a.yaml", problems)
    return problems.diagnostics


def document_of(text: str) -> Document:
    """Return what a text without a problem is read as."""
    problems = DiagnosticCollector()
    document = parse(text.encode(), "a.yaml", problems)
    assert problems.diagnostics == []
    return document


REFUSED: list[tuple[str | bytes, str]] = [
    ("a: 0123\n", "ambiguous-number 1:4"),
    ("a: 0o17\n", "ambiguous-number 1:4"),
    ("a: 1_000\n", "ambiguous-number 1:4"),
    ("a: 9223372036854775808\n", "ambiguous-number 1:4"),
    ("a: -9223372036854775809\n", "ambiguous-number 1:4"),
    ("a:\n  ! 12", "unknown-tag 2:3"),
    ("a:\n-\thttps://eu.posthog.com\n", "tab-indent 2:2"),
    ("a:\n  b: c # d\u2028  e: f\n", "ambiguous-yaml 2:11"),
    ("a: b # c\x85d\n", "ambiguous-yaml 1:9"),
    ("{?name: W1}", "ambiguous-yaml 1:3"),
    ('a: "x"# c', "ambiguous-yaml 1:7"),
    ("a: [b]#c", "ambiguous-yaml 1:7"),
    ("- &a !!str 'x'#c", "ambiguous-yaml 1:15"),
    ("a: 1\n\ufeffb: 2\n", "byte-order-mark 2:1"),
    (b"\xff\xfea\x00", "bad-encoding 1:1"),
    (b"\x00\x00\xfe\xff", "bad-encoding 1:1"),
    ("a: 1\r\n=======\r\nb: 2\r\n", "conflict-marker 2:1"),
    *((f"a: {q[0]}b c{q[1]}\n", "curly-quotes 1:4") for q in ("“”", "„“", "‘’", "«»")),
]


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_configuration_5_what_readers_interpret_differently_is_an_error_at_its_place(
    text: str | bytes, expected: str
) -> None:
    (problem,) = problems_of(text)
    assert f"{problem.code} {problem.at.line}:{problem.at.column}" == expected
    assert problem.hint
    assert problem.code != "curly-quotes" or "'b c'" in problem.hint


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        ("prefix: {year}/{month} # daily\n", "1:15", "'{year}/{month}'"),
        ("- [a] b\n", "1:7", "'[a] b'"),
        ("a:\n\u2003 b: 1\n  c: 2\n", "2:1", "space"),
        ("a:\n  b: 1\n\u3000 c: 2\n", "3:1", "space"),
    ],
)
def test_configuration_6_text_after_a_value_and_an_unusual_space_come_with_a_fix(
    text: str, place: str, fix: str
) -> None:
    (problem,) = problems_of(text)
    assert f"{problem.at.line}:{problem.at.column}" == place
    assert fix in f"{problem.message}\n{problem.hint}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 9223372036854775807\n", {"a": 2**63 - 1}),
        ("a: -9223372036854775808\n", {"a": -(2**63)}),
        ("a: [+1.5, 1.5e+3, '1e3', 1.2.3]\n", {"a": [1.5, 1500.0, "1e3", "1.2.3"]}),
        ("a: !!str 1\nb: !!int 2\n", {"a": "1", "b": 2}),
        (
            "a: [2026-01-01, ~, True, now]\nb:\n",
            {"a": ["2026-01-01", None, True, "now"], "b": None},
        ),
        ('a: "b\n\n  \tc"', {"a": "b\nc"}),
        ("a: [b, # c\n# d\n  e]", {"a": ["b", "e"]}),
        ("a: b#c\nd: 'e' # f", {"a": "b#c", "d": "e"}),
        ("a: &b_1-c [1]\nd: [*b_1-c, e]", {"a": [1], "d": [[1], "e"]}),
        ("a: '! 12'\nb: c ! d & e? * f\n", {"a": "! 12", "b": "c ! d & e? * f"}),
        ("a: [-1, -b, a-, ? b]", {"a": [-1, "-b", "a-", {"b": None}]}),
        ('a: |\n  "b"#\n  [c,\n\n  # d', {"a": '"b"#\n[c,\n\n# d'}),
        ("&a b: *a\nc: 1\n", {"b": "b", "c": 1}),
        ("a: &a b\n*a : 1\n", {"a": "b", "b": 1}),
        ("a: #b\n  c: 1\nd: #e\n- 1\n", {"a": {"c": 1}, "d": [1]}),
        ("a: '“b”'\nc: d „e“ ‘f’ «g»\n", {"a": "“b”", "c": "d „e“ ‘f’ «g»"}),
        ("", None),
    ],
)
def test_yaml_that_is_read_in_one_way_is_accepted(text: str, value: JSON) -> None:
    assert document_of(text).value == value


MERGED = """\
x: &x {a: 1}
y: &y {<<: *x, b: 2}
earlier-wins:
  <<: [*y, {a: 3, c: 4}]
own-wins:
  <<: *y
  b: 3
"""


def test_merge_keys_keep_their_places() -> None:
    document = document_of(MERGED)
    assert document.value["earlier-wins"] == {"b": 2, "a": 1, "c": 4}
    assert document.value["own-wins"] == {"a": 1, "b": 3}
    lines = {("earlier-wins", "a"): 1, ("earlier-wins", "c"): 4, ("own-wins", "b"): 7}
    assert {path: document.mark(path).line for path in lines} == lines
    itself = parse(b"a: &x\n  <<: *x\n  b: 1\n", "f", DiagnosticCollector())
    assert [itself.mark(("a", name)).line for name in "bc"] == [3, 1]


def test_configuration_12_a_chain_of_merge_keys_may_be_long() -> None:
    links = 600
    chain = [f"a{n}: &a{n}\n  <<: *a{n - 1}\n  x{n}: {n}\n" for n in range(1, links)]
    value = document_of("a0: &a0 {x0: 0}\n" + "".join(chain)).value
    assert isinstance(value, dict)
    assert value[f"a{links - 1}"] == {f"x{n}": n for n in range(links)}


def test_values_without_end_are_told() -> None:
    deep = [f"a{n}: &a{n} {{b: *a{n - 1}}}\n" for n in range(1, 2000)]
    wide = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 100)}]}}\n" for n in range(1, 90)]
    fields = ", ".join(f"x{number}: 1" for number in range(100))
    for first, lines, code in (("", deep, "too-deep"), (fields, wide, "alias-bomb")):
        found = problems_of(f"a0: &a0 {{{first}}}\n{''.join(lines)}")
        assert {problem.code for problem in found} == {code}


def test_a_commit_with_ambiguous_yaml_can_be_read_if_the_caller_is_lenient() -> None:
    problems = DiagnosticCollector(lenient=AMBIGUOUS)
    assert parse(b"a: [b]#c\n", "a.yaml", problems).value == {"a": ["b"]}
    assert not problems.failed


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode(errors="surrogatepass"))
)
def test_nothing_makes_the_loader_fail(raw: bytes) -> None:
    problems_of(raw)
