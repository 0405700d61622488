"""Editing values: the intended value changes, everything else stays, and odd places are refused."""

from __future__ import annotations

import re
from copy import deepcopy
from difflib import SequenceMatcher, unified_diff
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import DiagnosticCollector
from reconciler.editing.editing import Edit, NotEditable, edited, reason_against
from reconciler.files.yaml_loader import parse
from reconciler.model.values import MISSING, Path, mapped_leaves, value_at
from tests.support.limits import LONG

FILE = """\
# Exports of the shop.
shared: &shared  # for all
  interval: hour
batch_exports:
  # The first one.
  one: # it
    name: One
    paused: false   # off
    model: 'events'
    end_at:  # never
    destination:
      type: S3
      config: &config
        bucket_name: "b"  # the bucket
    filters: # noise
      - $a   # a
      # between
      - $b
    tags: [x, 'y', z] # list
    names:  # all
      - p
      - q
      # below
  two:
    name: Two
    destination: {type: S3, config: *config}
    hogql_query: |
        SELECT 1
          # FROM x

  three:
    <<: *shared
    name: Three
    destination:
      type: S3
      config: {bucket_name: c, prefix: "q", region: eu}  # flow
    overrides:
      prod:
        paused: true  # not yet
      # staging differs
      dev:
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


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        ((*ONE, "paused"), True, ["-    paused: false   # off", "+    paused: true   # off"]),
        ((*ONE, "end_at"), "x", ["-    end_at:  # never", "+    end_at: x  # never"]),
        (
            (*ONE, "tags"),
            ["y", "t"],
            ["-    tags: [x, 'y', z] # list", "+    tags: ['y', t] # list"],
        ),
        (
            (*THREE, *CONFIG),
            {"bucket_name": "c", "prefix": 'r"', "region": "eu", "acl": "x"},
            [
                '-      config: {bucket_name: c, prefix: "q", region: eu}  # flow',
                '+      config: {bucket_name: c, prefix: r", region: eu, acl: x}  # flow',
            ],
        ),
        (
            (*TWO, "overrides", "prod", "paused"),
            False,
            ["+    overrides:", "+      prod:", "+        paused: false"],
        ),
    ],
)
def test_only_the_lines_of_the_key_change(path: Path, value: Any, lines: list[str]) -> None:
    text = after((path, value))
    compared = unified_diff(FILE.splitlines(), text.splitlines(), lineterm="", n=0)
    found = [line for line in compared if not line.startswith(("---", "+++", "@@"))]
    assert found == lines
    assert reason_against(read(FILE), Edit(path, value)) is None


_SHARED = "an anchor, an alias or a merge key"
_COMMENTS = "a comment that it would remove"


@pytest.mark.parametrize(
    ("path", "value", "place", "what"),
    [
        ((*ONE, *CONFIG, "bucket_name"), "z", "13:7", _SHARED),
        ((*ONE, "destination"), MISSING, "13:7", _SHARED),
        ((*TWO, *CONFIG, "prefix"), "z", "26:5", _SHARED),
        ((*TWO, "destination"), MISSING, "26:5", _SHARED),
        ((*THREE, "interval"), "day", "32:5", _SHARED),
        ((*ONE, "filters"), ["$b"], "15:5", _COMMENTS),
        ((*THREE, "overrides"), MISSING, "41:7", _COMMENTS),
        ((*ONE, "names"), "a\nb\n", "20:5", _COMMENTS),
    ],
)
def test_i16_what_an_edit_would_lose_or_share_is_refused_with_its_place(
    path: Path, value: Any, place: str, what: str
) -> None:
    reason = f"f.yaml:{place}: cannot edit a value with {what}"
    assert reason_against(read(FILE), Edit(path, value)) == reason
    with pytest.raises(NotEditable, match=f"^{re.escape(reason)}; nothing was written$"):
        after((path, value))


@pytest.mark.parametrize(
    "text",
    [
        "? batch_exports\n: b:\n    name: A\n    paused: true\n",
        '"batch_exports": {b: {name: A, paused: &x true, model: *x}}\n',
        "batch_exports:\n  b: {paused: true,  # P\n    name: A}\n",
    ],
)
def test_places_that_cannot_be_edited_are_refused(text: str) -> None:
    with pytest.raises(NotEditable, match=r"^f\.yaml:\d+:\d+: cannot edit a value with "):
        after((("batch_exports", "b", "paused"), MISSING), text=text)


def test_line_ends_and_an_open_last_line_stay() -> None:
    text = "batch_exports:\r\n  a:\r\n    name: A"
    path = ("batch_exports", "a", "paused")
    assert after((path, True), text=text) == f"{text}\r\n    paused: true\r\n"


TEXTS = st.sampled_from(["x", "a: b", " # c", "1", "yes", "", "a\nb\n", "é'\"", "$${x}", "l " * 60])
LEAVES = TEXTS | st.booleans() | st.none() | st.integers(-9, 9)
VALUES = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(TEXTS, LEAVES, max_size=2)
KEYS = [path[:depth] for path, _ in mapped_leaves(read(FILE).value) for depth in range(3, 7)]


def owned(text: str) -> list[tuple[Path | None, str]]:
    """Return the lines of a file, each with the path of the key that it belongs to."""
    document, starts = read(text), {}
    for path, _ in mapped_leaves(document.value):
        for depth in range(1, len(path) + 1):
            # What an alias repeats is where its anchor is.
            starts.setdefault(document.key_mark(path[:depth]).line, path[:depth])
    owner: Path | None = None
    lines: list[tuple[Path | None, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        owner = starts.get(number, owner)
        is_text = owner is not None and str(owner[-1]) == "hogql_query"
        is_comment = line.lstrip().startswith("#") and not is_text
        lines.append((None if is_comment else owner, line))
    return lines


def expected(values: Any, path: Path, value: Any) -> Any:
    """Return the values after an edit; resources stay when they become empty."""
    holders = [deepcopy(values)]
    for part in path[:-1]:
        if not isinstance(holders[-1].get(part), dict):
            if value is MISSING:
                return holders[0]
            holders[-1][part] = {}
        holders.append(holders[-1][part])
    if value is not MISSING:
        holders[-1][path[-1]] = value
        return holders[0]
    for depth in reversed(range(len(path))):
        holders[depth].pop(path[depth], None)
        if holders[depth] or depth <= 2:
            break
    return holders[0]


@settings(max_examples=3000 if LONG else 150)
@given(data=st.data(), end=st.sampled_from(["\n", "\r\n"]))
def test_an_edit_changes_the_lines_of_its_key_or_is_refused_with_its_place(
    data: st.DataObject, end: str
) -> None:
    lines = owned(FILE)
    text = "".join(line + end for _, line in lines)
    document = read(text)
    path = data.draw(st.sampled_from([*KEYS, *((*path, "prefix") for path in KEYS)]))
    value = data.draw(VALUES | st.just(MISSING))
    edit = Edit(path, value)
    reason = reason_against(document, edit)
    if reason is not None:
        assert re.match(r"f\.yaml:\d+:\d+: cannot edit a value with ", reason)
        return
    changed = edited(document, [edit])
    assert read(changed).value == expected(document.value, path, value)
    matcher = SequenceMatcher(None, text.split(end), changed.split(end), autojunk=False)
    for tag, low, high, *_ in matcher.get_opcodes():
        for owner, line in lines[low:high] if tag != "equal" else ():
            assert owner is not None, line
            assert owner[: len(path)] == path[: len(owner)], line
            # A comment beside a key goes with the key, and no other comment goes.
            if value_at(read(changed).value, owner) is not MISSING:
                comments = re.findall(r"# (?!FROM).*", line)
                assert all(comment in changed for comment in comments)
    assert edited(read(changed), [edit]) == changed
