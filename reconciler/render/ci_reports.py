"""Diagnostics and plans for code scanning (SARIF 2.1.0) and for the reports of GitLab."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from reconciler.codes import meaning
from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.model.plan import Plan
from reconciler.model.text import plain_json
from reconciler.render.diagnostics import message_of, safe_json
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.alerts import new_places_of, violations_of
from reconciler.render.plan.words import totals_of
from reconciler.version import __version__

_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
_WITHOUT_PLACE = "reconciler.yaml"
"""The file of a diagnostic without a place: GitLab requires one."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


def plan_as_gitlab(plan: Plan, _: RenderOptions = DEFAULTS) -> str:
    """Return the counts for `artifacts:reports:terraform`, on one line."""
    totals = totals_of(plan)
    counts = {"create": totals.create, "update": totals.change, "delete": totals.destroy}
    return plain_json(json.dumps(counts)) + "\n"


def diagnostics_as_gitlab(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> str:
    """Return a list for `artifacts:reports:codequality`."""
    same: Counter[str] = Counter()
    return safe_json([_issue(diagnostic, options, same) for diagnostic in diagnostics])


def _issue(diagnostic: Diagnostic, options: RenderOptions, same: Counter[str]) -> dict[str, Any]:
    at = diagnostic.at
    path = options.repository_path(at.file if at is not None else _WITHOUT_PLACE)
    message = message_of(diagnostic)
    # Without the line: a problem that moves within its file is the same problem.
    identity = f"{diagnostic.code}\0{path}\0{message}"
    same[identity] += 1
    content = f"{identity}\0{same[identity]}".encode(errors="surrogatepass")
    return {
        "description": _with_hint(diagnostic),
        "check_name": diagnostic.code,
        "fingerprint": sha256(content).hexdigest(),
        "severity": _SEVERITIES[diagnostic.level],
        "location": {"path": path, "lines": {"begin": at.line if at is not None else 1}},
    }


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
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": diagnostic.level.value,
        # Braces stay single: the standard doubles them only in messages with arguments.
        "message": {"text": _with_hint(diagnostic)},
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


def _with_hint(diagnostic: Diagnostic) -> str:
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    return f"{message_of(diagnostic)}{hint}"


def plan_as_sarif(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return what is new in a plan, then its violations."""
    return diagnostics_as_sarif((*new_places_of(plan), *violations_of(plan)), options)
