"""Diagnostics as text, JSON, workflow annotations and SARIF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.render.plan.words import printable
from reconciler.version import __version__

_LONGEST_LINE = 160


def diagnostics_as_text(diagnostics: Sequence[Diagnostic], *, colour: bool = False) -> str:
    """`file:line:column: message`, the line, a caret with the way out, and a count."""
    blocks = [_block(each, colour=colour) for each in diagnostics]
    errors = sum(each.severity is Severity.ERROR for each in diagnostics)
    warnings = len(diagnostics) - errors
    counts = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return "\n".join([*blocks, *([", ".join(counts)] if counts else [])]) + "\n" if blocks else ""


def _block(each: Diagnostic, *, colour: bool) -> str:
    word = each.severity.value
    if colour:
        word = f"\x1b[{'1;31' if each.severity is Severity.ERROR else '33'}m{word}\x1b[0m"
    place = f"{each.at}: " if each.at is not None else ""
    lines = [f"{place}{word}: {printable(each.message)} [{each.code}]"]
    if each.at is not None and each.line is not None:
        lines += _snippet(each.at, each.line, each.hint)
    elif each.hint is not None:
        lines.append(f"        {printable(each.hint)}")
    lines += [f"   {mark}: {printable(word)}" for mark, word in each.related]
    return "\n".join(lines)


def _snippet(at: Mark, line: str, hint: str | None) -> list[str]:
    text = line.replace("\t", " ")
    start = min(at.column - 1, len(text))
    if start > _LONGEST_LINE // 2:
        cut = start - _LONGEST_LINE // 2
        text, start = f"…{text[cut + 1 :]}", start - cut
    text = text[:_LONGEST_LINE]
    length = max(1, min(at.length, len(text) - start))
    told = f" {printable(hint)}" if hint is not None else ""
    return [f"{at.line:>5} | {printable(text)}", f"{' ' * 8}{' ' * start}{'^' * length}{told}"]


def diagnostics_as_json(diagnostics: Sequence[Diagnostic]) -> str:
    """A list of objects; codes are stable."""
    told = [
        {
            "code": each.code,
            "severity": each.severity.value,
            "message": each.message,
            "hint": each.hint,
            **_place(each.at),
            "related": [{**_place(mark), "message": word} for mark, word in each.related],
        }
        for each in diagnostics
    ]
    return orjson.dumps({"diagnostics": told}, option=orjson.OPT_INDENT_2).decode() + "\n"


def _place(at: Mark | None) -> dict[str, Any]:
    if at is None:
        return {"file": None, "line": None, "column": None}
    return {"file": at.file, "line": at.line, "column": at.column}


def diagnostics_as_github(diagnostics: Sequence[Diagnostic]) -> str:
    """Workflow commands, which the forge shows beside the lines of a pull request."""
    lines = []
    for each in diagnostics:
        place = (
            f" file={_property(each.at.file)},line={each.at.line},col={each.at.column},"
            if each.at is not None
            else " "
        )
        message = each.message if each.hint is None else f"{each.message}\n{each.hint}"
        lines.append(
            f"::{each.severity.value}{place}title={_property(each.code)}::{_data(message)}"
        )
    return "\n".join(lines) + ("\n" if lines else "")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def diagnostics_as_sarif(diagnostics: Sequence[Diagnostic]) -> str:
    """SARIF 2.1.0, for code scanning."""
    codes = sorted({each.code for each in diagnostics})
    run = {
        "tool": {
            "driver": {
                "name": "reconciler",
                "version": __version__,
                "rules": [{"id": code} for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(each) for each in diagnostics],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return orjson.dumps(log, option=orjson.OPT_INDENT_2).decode() + "\n"


def _result(each: Diagnostic) -> Mapping[str, Any]:
    message = each.message if each.hint is None else f"{each.message} ({each.hint})"
    result: dict[str, Any] = {
        "ruleId": each.code,
        "level": each.severity.value,
        "message": {"text": message},
    }
    if each.at is not None:
        region = {
            "startLine": each.at.line,
            "startColumn": each.at.column,
            "endColumn": each.at.column + each.at.length,
        }
        place = {"artifactLocation": {"uri": each.at.file}, "region": region}
        result["locations"] = [{"physicalLocation": place}]
    return result
