"""JUnit XML, which most CI systems show as test results."""

from __future__ import annotations

from reconciler.render.formats.base import Format, Later

FORMAT = Format(
    "junit",
    plan=Later("junit", "plan_as_junit"),
    diagnostics=Later("junit", "diagnostics_as_junit"),
)
