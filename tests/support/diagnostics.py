"""Checks that hold for all diagnostics, whatever is wrong with the files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from reconciler.diagnostics import Diagnostic, Mark
from reconciler.model.text import printable
from reconciler.render.ci_reports import diagnostics_as_github, diagnostics_as_sarif
from reconciler.render.diagnostics import diagnostics_as_json, diagnostics_as_text

Reported = tuple[str, str, str | None, int | None, int | None]
"""Severity, code, file, line and column: what all formats must agree in."""

_HEAD = re.compile(
    r"(?:(?P<place>\S.*?:\d+:\d+): )?(?P<severity>error|warning|note): .*\[([a-z0-9-]+)\]"
)
_COMMAND = re.compile(
    r"::(error|warning|notice) (?:file=([^,]*),line=(\d+),col=(\d+),endColumn=\d+,)?"
    r"title=([a-z0-9-]+)::.+"
)


def assert_sound(diagnostics: Sequence[Diagnostic], files: Mapping[str, bytes]) -> None:
    """Check that every format reports every diagnostic once, at the same place, which exists."""
    expected = [_reported(diagnostic) for diagnostic in diagnostics]
    text = diagnostics_as_text(diagnostics)
    heads = [
        (severity, code, printable(f"{file}:{line}:{column}") if file is not None else None)
        for severity, code, file, line, column in expected
    ]
    # Errors come last there, and the first of many that are alike has the number of the others.
    heads.sort(key=lambda head: head[0] == "error")
    alike = [int(count) for count in re.findall(r"(?m)^  (\d+) more like this: ", text)]
    shown = _from_text(text)
    left = iter(heads)
    assert all(head in left for head in shown), "in order"
    assert len(shown) + sum(alike) == len(heads)
    assert list(_from_json(diagnostics_as_json(diagnostics))) == expected
    # GitHub shows only the first annotations: errors come first there.
    github = [(*head[:2], head[2] and printable(head[2]), *head[3:]) for head in expected]
    github.sort(key=lambda head: head[0] != "error")
    assert list(_from_github(diagnostics_as_github(diagnostics))) == github
    assert list(_from_sarif(diagnostics_as_sarif(diagnostics))) == expected
    for diagnostic in diagnostics:
        for mark in [diagnostic.at, *(related for related, _ in diagnostic.related)]:
            if mark is not None and mark.file in files:
                assert_within(mark, files[mark.file])


def assert_within(mark: Mark, raw: bytes) -> None:
    """Check that a place is a character of the file, or the end of one of its lines."""
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", raw.decode("utf-8-sig", errors="replace"))
    assert mark.length >= 1
    assert 1 <= mark.line <= len(lines), f"{mark} is below the file"
    line = lines[mark.line - 1]
    assert 1 <= mark.column <= len(line) + 1, f"{mark} is beyond {line!r}"
    assert mark.column + mark.length <= len(line) + 2, f"{mark} goes on beyond {line!r}"


def _reported(diagnostic: Diagnostic) -> Reported:
    at = diagnostic.at
    place = (at.file, at.line, at.column) if at is not None else (None, None, None)
    return (diagnostic.level.value, diagnostic.code, *place)


def _from_text(text: str) -> list[tuple[str, str, str | None]]:
    lines = text.split("\n")
    # A no-break space is printable enough.
    assert all(line.replace("\xa0", " ").isprintable() for line in lines), text
    heads = [head for line in lines if (head := _HEAD.fullmatch(line))]
    return [(head["severity"], head[3], head["place"]) for head in heads]


def _from_json(text: str) -> Iterable[Reported]:
    for item in json.loads(text)["diagnostics"]:
        yield item["severity"], item["code"], item["file"], item["line"], item["column"]


def _from_github(text: str) -> Iterable[Reported]:
    commands = text.splitlines()[:-1]
    for line in commands:
        command = _COMMAND.fullmatch(line)
        assert command is not None, line
        severity, file, number, column, code = command.groups()
        severity = severity.replace("notice", "note")
        if file is None:
            yield severity, code, None, None, None
        else:
            name = file.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
            yield severity, code, name, int(number), int(column)


def _from_sarif(text: str) -> Iterable[Reported]:
    for result in json.loads(text)["runs"][0]["results"]:
        place: tuple[str | None, int | None, int | None] = (None, None, None)
        for location in result.get("locations", ()):
            physical = location["physicalLocation"]
            region = physical["region"]
            assert region["endColumn"] > region["startColumn"]
            name = unquote(physical["artifactLocation"]["uri"])
            place = (name, region["startLine"], region["startColumn"])
        yield result["level"], result["ruleId"], *place
