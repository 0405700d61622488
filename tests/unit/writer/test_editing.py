"""Editing values: the intended value changes, everything else stays, and odd places are refused."""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.authoring.editing import Edit, edited
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.model.values import MISSING, Path, mapped_leaves
from reconciler.workspace.yaml.loader import parse

FILE = """\
# Exports of the shop.
shared: &shared  # for all
  interval: hour
batch_exports:
  # The first one.
  one: # it
    name: One
    paused: false   # off
    interval: &often 'hour'
    destination:
      type: S3
      config: &config
        bucket_name: "b"  # the bucket
        prefix: p/
        exclude_events: # noise
          - $a   # a
          # between
          - $b
          - $c
        include_events: [x, 'y', z] # list
    # below
  two:
    name: Two
    destination: {type: S3, config: *config}
    interval: *often
    hogql_query: |  # sql
        SELECT 1
          FROM x

  three:
    <<: *shared
    name: Three
    destination:
      type: S3
      config: {bucket_name: c, prefix: "q", region: eu}
    overrides:
      prod:
        paused: true
"""
ONE, TWO, THREE = (("batch_exports", key) for key in ("one", "two", "three"))
CONFIG = ("destination", "config")


def read(text: str) -> Any:
    problems = DiagnosticCollector()
    document = parse(text.encode(), "f.yaml", problems)
    assert not problems.diagnostics
    return document


def after(*edits: tuple[Path, Any], text: str = FILE) -> str:
    return edited(read(text), [Edit(path, value) for path, value in edits])


def changed(*edits: tuple[Path, Any]) -> list[str]:
    lines = unified_diff(FILE.splitlines(), after(*edits).splitlines(), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        ((*ONE, "paused"), True, ["-    paused: false   # off", "+    paused: true   # off"]),
        ((*ONE, "name"), "a b", ["-    name: One", "+    name: a b"]),
        (
            (*THREE, *CONFIG, "prefix"),
            'r"',
            [
                '-      config: {bucket_name: c, prefix: "q", region: eu}',
                '+      config: {bucket_name: c, prefix: "r\\"", region: eu}',
            ],
        ),
        (
            (*THREE, *CONFIG, "region"),
            MISSING,
            [
                '-      config: {bucket_name: c, prefix: "q", region: eu}',
                '+      config: {bucket_name: c, prefix: "q"}',
            ],
        ),
        (
            (*THREE, "overrides", "prod", "paused"),
            MISSING,
            ["-    overrides:", "-      prod:", "-        paused: true"],
        ),
        ((*THREE, "interval"), "day", ["+    interval: day"]),
        (
            (*TWO, "overrides", "prod", "paused"),
            False,
            ["+    overrides:", "+      prod:", "+        paused: false"],
        ),
        (
            (*TWO, "hogql_query"),
            "SELECT 1\n  FROM y\n",
            ["-          FROM x", "+          FROM y"],
        ),
        (
            (*TWO, *CONFIG, "prefix"),
            "z",
            [
                "-    destination: {type: S3, config: *config}",
                "+    destination: {type: S3, config: {<<: *config, prefix: z}}",
            ],
        ),
        (
            (*ONE, "interval"),
            "day",
            [
                "-    interval: &often 'hour'",
                "+    interval: &often 'day'",
                "-    interval: *often",
                "+    interval: hour",
            ],
        ),
    ],
)
def test_only_the_value_changes(path: Path, value: Any, lines: list[str]) -> None:
    assert changed((path, value)) == lines


def test_items_of_lists_keep_their_comments() -> None:
    assert changed(
        ((*ONE, *CONFIG, "exclude_events"), ["$b", "$c", "$d"]),
        ((*TWO, *CONFIG, "exclude_events"), ["$b", "$c", "$d"]),
        ((*ONE, *CONFIG, "include_events"), ["w", "x", "z", "t"]),
        ((*TWO, *CONFIG, "include_events"), ["w", "x", "z", "t"]),
    ) == [
        "-          - $a   # a",
        "-        include_events: [x, 'y', z] # list",
        "+          - $d",
        "+        include_events: [w, x, z, t] # list",
    ]


@pytest.mark.parametrize("is_open", [False, True])
@given(st.permutations(["a", "b", "c", "d", "e"]), st.integers(0, 5), st.booleans())
def test_apply_a9_a_comment_moves_with_its_item(
    is_open: bool, order: list[str], kept: int, is_new: bool
) -> None:
    head = "batch_exports:\n  one:\n    destination:\n      config:\n        include_events:\n"
    items = [f"          # above {name}\n          - {name}  # beside {name}\n" for name in "abcde"]
    text = head + "".join(items)
    want = [*order[:kept], *(["new"] if is_new else []), *order[kept:]]
    path = (*ONE, *CONFIG, "include_events")
    lines = after((path, want), text=text[:-1] if is_open else text).splitlines()
    assert [line for line in lines if "- " in line] == [
        "          - new" if name == "new" else f"          - {name}  # beside {name}"
        for name in want
    ]
    # What is above the first item may be about the list.
    for name in "bcde":
        below = lines[lines.index(f"          # above {name}") + 1 :]
        assert next(line for line in below if "- " in line).split()[1] == name
    assert sorted(line for line in lines if "# above" in line) == sorted(
        line for line in text.splitlines() if "# above" in line
    )


def test_line_ends_and_an_open_last_line_stay() -> None:
    text = "batch_exports:\r\n  a:\r\n    name: A"
    path = ("batch_exports", "a", "paused")
    assert after((path, True), text=text) == f"{text}\r\n    paused: true\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "batch_exports: &b\n  a: &a {name: A, paused: true}\n  b: {<<: *a, name: B}\n",
        "? batch_exports\n: b:\n    name: A\n    paused: true\n",
        "{batch_exports: {b: {name: A, paused: true}}}\n",
    ],
)
def test_places_that_cannot_be_edited_are_refused(text: str) -> None:
    with pytest.raises(ReconcilerError, match=r"f\.yaml.*: cannot edit this place safely"):
        after((("batch_exports", "b", "paused"), MISSING), text=text)


PATHS = [path for path, _ in mapped_leaves(read(FILE).value)]
NEW = [(*key, name) for key in (ONE, TWO, THREE) for name in ("model", "timezone")]
TEXTS = st.sampled_from(["x", "a: b", " # c", "1", "yes", "", "a\nb\n", "é'\"", "$${x}", "l " * 60])
VALUES = TEXTS | st.booleans() | st.none() | st.integers(-9, 9) | st.lists(TEXTS, max_size=4)


@given(st.dictionaries(st.sampled_from([*PATHS, *NEW]), VALUES, max_size=4))
def test_any_values_can_be_set_and_comments_stay(values: dict[Path, Any]) -> None:
    text = after(*values.items())
    assert after(*values.items(), text=text) == text
    lists = {path for path in values if str(path[-1]).endswith("_events")}
    assert lists or all(comment in text for comment in re.findall("#.*", FILE))


FLOW = """\
batch_exports:
  one:
    name: One
    destination: {
      a: 1,  # first
      # of b
      b: 2,  # second
      # of c
      c: [p, q],  # third
    }
"""
DESTINATION = (*ONE, "destination")


@pytest.mark.parametrize(
    ("edits", "lines"),
    [
        ([("a", MISSING)], ["-      a: 1,  # first"]),
        ([("b", MISSING)], ["-      b: 2,  # second"]),
        ([("c", MISSING)], ["-      c: [p, q],  # third"]),
        (
            [("b", MISSING), ("c", MISSING)],
            ["-      b: 2,  # second", "-      c: [p, q],  # third"],
        ),
        (
            [("c", MISSING), ("d", 3)],
            [
                "-      b: 2,  # second",
                "-      c: [p, q],  # third",
                "+      b: 2, d: 3,  # second",
            ],
        ),
    ],
)
def test_a_member_in_brackets_takes_only_the_comment_beside_it(edits, lines) -> None:
    text = after(*(((*DESTINATION, name), value) for name, value in edits), text=FLOW)
    compared = unified_diff(FLOW.splitlines(), text.splitlines(), lineterm="", n=0)
    found = [line for line in compared if not line.startswith(("---", "+++", "@@"))]
    assert sorted(found) == sorted(lines)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        (
            "batch_exports:\n  one: {name: O, destination: {a: [p,  # P\n    q,  # Q\n    r]}}\n",
            (*DESTINATION, "a"),
            ["p", "r"],
        ),
        ("batch_exports:\n  one:\n    model: x\n      # below\n", (*ONE, "model"), "a\nb\n"),
    ],
)
def test_a_value_that_needs_a_comment_to_go_is_refused(text, path, value) -> None:
    with pytest.raises(ReconcilerError, match="cannot edit this place safely"):
        after((path, value), text=text)


def test_the_comment_behind_the_bracket_of_an_emptied_list_stays() -> None:
    text = "batch_exports:\n  one:\n    filters: [\n      1,\n    ]  # none is needed\n"
    expected = "batch_exports:\n  one:\n    filters: []  # none is needed\n"
    assert after(((*ONE, "filters"), []), text=text) == expected
