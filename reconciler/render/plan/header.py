"""The first lines of a plan: where it applies, what it is compared with, and its id."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from reconciler.model.change import Reason
from reconciler.model.identity import plan_id
from reconciler.model.plan import Plan, PlanSource
from reconciler.model.text import printable, several, shortened

_SHORT_COMMIT = 7
SHORT_ID = 8
_LONGEST_BRANCH = 80
_LONGEST_NAME = 40
_AGES = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_NOT_USED = "not used: the plan has only what the command requests"
_NO_BASE = "none: removals, drift and changed secrets are not detected (--base REF)"


def environment_as_text(source: PlanSource, *, full: bool = False) -> str:
    """Return `production "Acme EU" · https://eu.posthog.com`, without a name the organization's id.

    Unless it is shown in full, an organization id that is a UUID is shortened.
    """
    name, where = source.environment, source.base_url
    if source.organization_name:
        name += f' "{shortened(source.organization_name, _LONGEST_NAME)}"'
    if full or not source.organization_name:
        where += f" · organization {source.organization if full else _short(source.organization)}"
    return printable(f"{name} · {where}")


def base_as_text(plan: Plan) -> str:
    """Return `origin/main@1a2b3c4 (3 commits, 2 hours)`, or what is missing without a base."""
    source = plan.source
    if source.base is None:
        requested = any(Reason.REQUESTED in change.reasons for change in plan.effective)
        return _NOT_USED if requested else _NO_BASE
    name = base_name(source)
    if source.base == source.head:
        return f"{name} (HEAD)"
    age = _age(source.base_time or "", plan.created_at)
    distance = several(source.base_commits, "commit")
    return f"{name} ({distance}, {age})" if age else f"{name} ({distance})"


def versions_as_text(plan: Plan) -> str:
    """Return `origin/main@1a2b3c4 (3 commits) → feature@9f8e7d6`, `base …` without a HEAD."""
    base, head = base_as_text(plan), _named(plan.source.head_ref, plan.source.head)
    uncommitted = " + uncommitted" if plan.source.uncommitted else ""
    return f"{base} → {head}{uncommitted}" if head else f"base {base}"


def base_name(source: PlanSource) -> str:
    """Return `origin/main@1a2b3c4`, the commit alone without a reference."""
    return _named(source.head_ref if source.base_ref == "HEAD" else source.base_ref, source.base)


def _named(ref: str | None, commit: str | None) -> str:
    short = printable((commit or "")[:_SHORT_COMMIT])
    branch = shortened(printable(ref or ""), _LONGEST_BRANCH)
    return f"{branch}@{short}" if branch and short else short


def plan_as_id(plan: Plan) -> str:
    """Return `plan 3c9a41f0`."""
    return f"plan {plan_id(plan)[:SHORT_ID]}"


def undone_as_text(plan: Plan) -> str:
    """Return what a plan undoes, "" if nothing."""
    undone = plan.source.undoes
    if undone is not None:
        return f"plan {printable(undone[:SHORT_ID])}"
    undoes = any(Reason.UNDO in change.reasons for change in plan.effective)
    return "applied changes" if undoes else ""


def _short(organization: str) -> str:
    try:
        UUID(organization)
    except ValueError:
        return organization
    # Ids that were made in the same minute begin alike.
    return f"{organization[:SHORT_ID]}…{organization[-4:]}"


def _age(start: str, end: str) -> str:
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        # A saved plan may contain any text.
        return ""
    ages = (several(int(passed // size), unit) for size, unit in _AGES if passed >= size)
    return next(ages, "")
