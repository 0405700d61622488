"""Run the official test suite of YAML. README.md beside this file says how to get it."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Level
from reconciler.files.yaml_document import Document
from reconciler.files.yaml_loader import parse
from tests.support.diagnostics import assert_sound

README = Path(__file__).parent / "README.md"
SUITE = os.environ.get("YAML_TEST_SUITE")
pytestmark = pytest.mark.skipif(not SUITE, reason="YAML_TEST_SUITE names no checkout")

_BY_CODE = {
    "several-documents": "a file has one document",
    "bad-key": "keys are text",
    "unknown-tag": "tags are not supported",
    "tab-indent": "tabs are not allowed where they could indent",
    "duplicate-anchor": "an alias must refer to one anchor",
    "ambiguous-yaml": "YAML readers interpret it differently",
}
_PARSER = "the parser, libyaml, does not support this syntax of YAML 1.2"
_BY_WORD = {"directive": "directives are not supported", "YAML document": "YAML 1.1 or 1.2 only"}
_INVALID_AND_ACCEPTED = frozenset(
    ["9C9N", "CVW2", "DK95/01", "G5U8", "MUS6/00", "QB6E", "S98Z", "X4QW", "Y79Y/003", "YJV2"]
)
"""Invalid cases that libyaml reads as their authors meant them: indentation, comments, dashes."""
_READ_AS_BY_LIBYAML = frozenset({"DK95/01", "JEF9/02", "L24T/01", "Y2GN"})
"""Cases that libyaml reads differently: spaces at the end of a file, colons in anchors, tabs."""
_START_OF_TABLE = "<!-- generated -->\n"


@cache
def cases() -> Mapping[str, tuple[Path, Document, tuple[Diagnostic, ...]]]:
    """Return the folder of each case by its name, and how its input is read."""
    read = {}
    root = Path(str(SUITE))
    for path in sorted(root.rglob("in.yaml")):
        name = path.parent.relative_to(root).as_posix()
        if not name.startswith(("name/", "tags/")):
            problems = DiagnosticCollector()
            document = parse(path.read_bytes(), "in.yaml", problems)
            read[name] = path.parent, document, problems.in_order()
    assert len(read) > 300, "no checkout of the branch with the data"
    return read


def is_refused(diagnostics: tuple[Diagnostic, ...]) -> bool:
    return any(diagnostic.level is Level.ERROR for diagnostic in diagnostics)


def reason_of(diagnostic: Diagnostic) -> str:
    by_word = (reason for word, reason in _BY_WORD.items() if word in diagnostic.message)
    return _BY_CODE.get(diagnostic.code) or next(by_word, _PARSER)


def test_every_case_is_read_or_reported_in_every_format() -> None:
    for folder, _, diagnostics in cases().values():
        assert_sound(diagnostics, {"in.yaml": (folder / "in.yaml").read_bytes()})


def test_no_other_invalid_case_is_accepted() -> None:
    accepted = [name for name, case in cases().items() if not is_refused(case[2])]
    invalid = {name for name in accepted if (cases()[name][0] / "error").exists()}
    assert invalid == _INVALID_AND_ACCEPTED


def test_every_other_accepted_case_has_the_value_of_the_suite() -> None:
    other = []
    for name, (folder, document, diagnostics) in cases().items():
        expected = folder / "in.json"
        if not is_refused(diagnostics) and expected.exists():
            text = expected.read_text(encoding="utf-8").strip()
            if document.value != (json.loads(text) if text else None):
                other.append(name)
    assert set(other) == _READ_AS_BY_LIBYAML


def test_the_table_lists_what_is_refused(request: pytest.FixtureRequest) -> None:
    refused: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, (folder, _, diagnostics) in cases().items():
        if is_refused(diagnostics) and not (folder / "error").exists():
            first = diagnostics[0]
            refused[reason_of(first), first.code].append(name)
    rows = [
        f"| {reason} | `{code}` | {len(names)} | {' '.join(names)} |"
        for (reason, code), names in sorted(refused.items())
    ]
    valid = [case for case in cases().values() if not (case[0] / "error").exists()]
    counts = (
        f"{len(cases())} cases: {len(cases()) - len(valid)} invalid, all refused "
        f"but {len(_INVALID_AND_ACCEPTED)}; "
        f"{len(valid)} valid, {sum(map(len, refused.values()))} refused."
    )
    head = ["| reason | code | number | cases |", "|---|---|---|---|"]
    table = "\n".join([counts, "", *head, *rows]) + "\n"
    above, marker, old = README.read_text(encoding="utf-8").partition(_START_OF_TABLE)
    if request.config.getoption("--update-golden"):
        README.write_text(above + marker + "\n" + table, encoding="utf-8")
    else:
        assert old == "\n" + table
