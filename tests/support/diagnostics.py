"""What must hold for all diagnostics, whatever was wrong with the files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from reconciler.errors import Diagnostic, Mark
from reconciler.model.wording import printable
from reconciler.render.diagnostics import diagnostics_as_json, diagnostics_as_text
from reconciler.render.formats.github import diagnostics_as_github
from reconciler.render.formats.sarif import diagnostics_as_sarif

Told = tuple[str, str, str | None, int | None, int | None]
"""Severity, code, file, line and column: what all formats must agree in."""

_HEAD = re.compile(
    r"(?:(?P<place>\S.*?:\d+:\d+): )?(?P<severity>error|warning): .*\[([a-z0-9-]+)\]"
)
_COMMAND = re.compile(
    r"::(error|warning) (?:file=([^,]*),line=(\d+),col=(\d+),endColumn=\d+,)?"
    r"title=([a-z0-9-]+)::.+"
)


def assert_sound(diagnostics: Sequence[Diagnostic], files: Mapping[str, bytes]) -> None:
    """Every format tells each diagnostic once and alike, at a place that exists."""
    expected = [_told(each) for each in diagnostics]
    assert _from_text(diagnostics_as_text(diagnostics)) == [
        (severity, code, printable(f"{file}:{line}:{column}") if file is not None else None)
        for severity, code, file, line, column in expected
    ]
    assert list(_from_json(diagnostics_as_json(diagnostics))) == expected
    # The forge shows only the first annotations: errors come first there.
    github = [(*each[:2], each[2] and printable(each[2]), *each[3:]) for each in expected]
    github.sort(key=lambda each: each[0] != "error")
    assert list(_from_github(diagnostics_as_github(diagnostics))) == github
    assert list(_from_sarif(diagnostics_as_sarif(diagnostics))) == expected
    for each in diagnostics:
        for mark in [each.at, *(related for related, _ in each.related)]:
            if mark is not None and mark.file in files:
                assert_within(mark, files[mark.file])


def assert_within(mark: Mark, raw: bytes) -> None:
    """A place is a character of the file, or the end of one of its lines."""
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", raw.decode("utf-8-sig", errors="replace"))
    assert mark.length >= 1
    assert 1 <= mark.line <= len(lines), f"{mark} is below the file"
    line = lines[mark.line - 1]
    assert 1 <= mark.column <= len(line) + 1, f"{mark} is beyond {line!r}"
    assert mark.column + mark.length <= len(line) + 2, f"{mark} goes on beyond {line!r}"


def _told(each: Diagnostic) -> Told:
    at = each.at
    place = (at.file, at.line, at.column) if at is not None else (None, None, None)
    return (each.severity.value, each.code, *place)


def _from_text(text: str) -> list[tuple[str, str, str | None]]:
    lines = text.split("\n")
    # A no-break space is printable enough.
    assert all(line.replace("\xa0", " ").isprintable() for line in lines), text
    heads = [found for line in lines if (found := _HEAD.fullmatch(line))]
    return [(found["severity"], found[3], found["place"]) for found in heads]


def _from_json(text: str) -> Iterable[Told]:
    for each in json.loads(text)["diagnostics"]:
        yield each["severity"], each["code"], each["file"], each["line"], each["column"]


def _from_github(text: str) -> Iterable[Told]:
    commands = text.splitlines()[:-1]
    for line in commands:
        found = _COMMAND.fullmatch(line)
        assert found is not None, line
        severity, file, number, column, code = found.groups()
        if file is None:
            yield severity, code, None, None, None
        else:
            name = file.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
            yield severity, code, name, int(number), int(column)


def _from_sarif(text: str) -> Iterable[Told]:
    for each in json.loads(text)["runs"][0]["results"]:
        place: tuple[str | None, int | None, int | None] = (None, None, None)
        for location in each.get("locations", ()):
            physical = location["physicalLocation"]
            region = physical["region"]
            assert region["endColumn"] > region["startColumn"]
            name = unquote(physical["artifactLocation"]["uri"])
            place = (name, region["startLine"], region["startColumn"])
        yield each["level"], each["ruleId"], *place
