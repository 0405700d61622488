"""Diagnostics as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.codes import meaning
from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.render.diagnostics import safe_json
from reconciler.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


def diagnostics_as_sarif(diagnostics: Sequence[Diagnostic], *, root: str = "") -> str:
    """One run, with every code once as a rule.

    `root` is the path of the workspace folder in its repository, with forward slashes: code
    scanning finds files by paths from there. Columns count code points, as ours do, and the end
    column is the one behind the last character.
    """
    codes = sorted({each.code for each in diagnostics})
    worst = {each.code for each in diagnostics if each.severity is Severity.ERROR}
    positions = {code: position for position, code in enumerate(codes)}
    driver = {
        "name": "reconciler",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code, "error" if code in worst else "warning") for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(each, positions[each.code], root) for each in diagnostics],
    }
    return safe_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str, level: str) -> Mapping[str, Any]:
    known = meaning(code)
    return {
        "id": code,
        "name": code.title().replace("-", ""),
        "shortDescription": {"text": f"{known.title}."},
        "fullDescription": {"text": f"{known.title}. {known.help}"},
        "help": {"text": known.help, "markdown": known.help},
        "defaultConfiguration": {"level": level},
    }


def _result(each: Diagnostic, position: int, root: str) -> Mapping[str, Any]:
    # Braces stay single: the standard doubles them for messages with arguments, and those who
    # show messages without arguments show them as they are.
    message = each.message if each.hint is None else f"{each.message}\n{each.hint}"
    result: dict[str, Any] = {
        "ruleId": each.code,
        "ruleIndex": position,
        "level": each.severity.value,
        "message": {"text": message},
    }
    if each.at is not None:
        result["locations"] = [{"physicalLocation": _place(each.at, root)}]
    if each.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _place(mark, root), "message": {"text": word}}
            for number, (mark, word) in enumerate(each.related, start=1)
        ]
    return result


def _place(at: Mark, root: str) -> Mapping[str, Any]:
    path = f"{root}/{at.file}" if root else at.file
    region = {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.line,
        "endColumn": at.column + at.length,
    }
    # By bytes: a name that is no UTF-8 keeps its own.
    uri = quote(os.fsencode(path), safe="/")
    return {"artifactLocation": {"uri": uri, "uriBaseId": _ROOT}, "region": region}
