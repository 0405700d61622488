"""Diagnostics and policy violations as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

from reconciler.render.formats.base import Format, Later

FORMAT = Format(
    "sarif",
    plan=Later("sarif", "plan_as_sarif"),
    diagnostics=Later("sarif", "diagnostics_as_sarif"),
)
