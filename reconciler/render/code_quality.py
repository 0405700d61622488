"""Reports of GitLab: counts of a plan for the merge request, and code quality."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from reconciler.diagnostics import Diagnostic, Level
from reconciler.model.plan import Plan
from reconciler.model.text import plain_json
from reconciler.render.diagnostics import message_of, safe_json
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.words import totals_of

_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
_WITHOUT_PLACE = "reconciler.yaml"
"""The file of a diagnostic without a place: GitLab requires one."""


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
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    return {
        "description": f"{message}{hint}",
        "check_name": diagnostic.code,
        "fingerprint": sha256(content).hexdigest(),
        "severity": _SEVERITIES[diagnostic.level],
        "location": {"path": path, "lines": {"begin": at.line if at is not None else 1}},
    }
