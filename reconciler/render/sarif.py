"""Diagnostics and policy violations as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.codes import meaning
from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.model.plan import Plan
from reconciler.render.diagnostics import message_of, safe_json
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.alerts import new_places_of, violations_of
from reconciler.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


def diagnostics_as_sarif(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> str:
    """Return a log of one run, with a rule for every code."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    levels = {diagnostic.code: diagnostic.level for diagnostic in reversed(diagnostics)}
    levels |= {item.code: item.level for item in diagnostics if item.level is Level.ERROR}
    driver = {
        "name": "reconciler",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code, levels[code].value) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(diagnostic, codes, options) for diagnostic in diagnostics],
    }
    return safe_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str, level: str) -> Mapping[str, Any]:
    explained = meaning(code)
    return {
        "id": code,
        "name": code.title().replace("-", ""),
        "shortDescription": {"text": f"{explained.title}."},
        "fullDescription": {"text": f"{explained.title}. {explained.help}"},
        "help": {"text": explained.help, "markdown": explained.help},
        "defaultConfiguration": {"level": level},
    }


def _result(diagnostic: Diagnostic, codes: list[str], options: RenderOptions) -> Mapping[str, Any]:
    # Braces stay single: the standard doubles them only in messages with arguments.
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": diagnostic.level.value,
        "message": {"text": f"{message_of(diagnostic)}{hint}"},
    }
    if diagnostic.environments:
        result["properties"] = {"environments": list(diagnostic.environments)}
    if diagnostic.at is not None:
        result["locations"] = [_location(diagnostic.at, options)]
    if diagnostic.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": label}, **_location(mark, options)}
            for number, (mark, label) in enumerate(diagnostic.related, start=1)
        ]
    return result


def _location(at: Mark, options: RenderOptions) -> Mapping[str, Any]:
    region = {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.line,
        "endColumn": at.column + at.length,
    }
    # A file name that is not UTF-8 keeps its bytes.
    path = options.repository_path(at.file).encode(errors="surrogateescape")
    artifact = {"uri": quote(path, safe="/"), "uriBaseId": _ROOT}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def plan_as_sarif(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return what is new in a plan, then its violations."""
    return diagnostics_as_sarif((*new_places_of(plan), *violations_of(plan)), options)
