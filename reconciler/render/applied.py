"""The end of `apply` as text: the report, and what a second plan would still change."""

from __future__ import annotations

from reconciler.model.event import Report
from reconciler.model.plan import Plan
from reconciler.render.plan.text import plan_as_text
from reconciler.render.progress import report_as_text


def applied_as_text(report: Report) -> str:
    """Return the report, nothing if there was nothing to apply."""
    return f"\n{report_as_text(report)}" if report != Report() else ""


def unverified_as_text(left: Plan | None) -> str:
    """Return the error for a second plan that is not empty; `left` is None if there is none."""
    if left is None or left.empty:
        return ""
    return f"error: the plan after apply is not empty:\n{plan_as_text(left)}"
