"""Diagnostics as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.codes import meaning
from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.render.diagnostics import safe_json
from reconciler.render.formats.base import Format
from reconciler.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


def diagnostics_as_sarif(diagnostics: Sequence[Diagnostic], *, root: str = "") -> str:
    """Return a log of one run, with every code once as a rule.

    `root` is the path of the workspace folder in its repository, with forward slashes: code
    scanning finds files by paths from there. Columns count code points, as ours do, and the end
    column is the one behind the last character.
    """
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    errors = {
        diagnostic.code for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR
    }
    positions = {code: position for position, code in enumerate(codes)}
    driver = {
        "name": "reconciler",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code, "error" if code in errors else "warning") for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [
            _result(diagnostic, positions[diagnostic.code], root) for diagnostic in diagnostics
        ],
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


def _result(diagnostic: Diagnostic, position: int, root: str) -> Mapping[str, Any]:
    # Braces stay single: the standard doubles them only in messages with arguments.
    message = "\n".join(filter(None, (diagnostic.message, diagnostic.hint)))
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": position,
        "level": diagnostic.severity.value,
        "message": {"text": message},
    }
    if diagnostic.at is not None:
        result["locations"] = [{"physicalLocation": _place(diagnostic.at, root)}]
    if diagnostic.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _place(mark, root), "message": {"text": label}}
            for number, (mark, label) in enumerate(diagnostic.related, start=1)
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
    # A file name that is not UTF-8 keeps its bytes.
    uri = quote(path.encode(errors="surrogateescape"), safe="/")
    return {"artifactLocation": {"uri": uri, "uriBaseId": _ROOT}, "region": region}


FORMAT = Format(
    "sarif",
    diagnostics=lambda diagnostics, options: diagnostics_as_sarif(diagnostics, root=options.root),
)
