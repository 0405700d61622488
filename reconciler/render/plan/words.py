"""Words and signs of plans, shared by all formats."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from reconciler.model.change import Action, Change, Origin, Severity
from reconciler.model.plan import Plan
from reconciler.model.wording import printable, several
from reconciler.render.style import Colour


class Label(NamedTuple):
    """A sign or word, and its colour on a terminal."""

    text: str
    colour: Colour


SIGNS: Mapping[Action, Label] = {
    Action.CREATE: Label("+", Colour.GREEN),
    Action.UPDATE: Label("~", Colour.YELLOW),
    Action.REPLACE: Label("±", Colour.MAGENTA),
    Action.PAUSE: Label("⏸", Colour.CYAN),
    Action.UNPAUSE: Label("▶", Colour.CYAN),
    Action.DELETE: Label("-", Colour.RED),
    Action.NO_OP: Label(" ", Colour.DIM),
}

ORIGINS: Mapping[Origin, str] = {
    Origin.FILES: "changed in the configuration",
    Origin.LIVE: "drifted",
    Origin.BOTH: "conflict",
    Origin.UNKNOWN: "",
}

SEVERITIES: Mapping[Severity, Label] = {
    Severity.DANGER: Label("DANGER", Colour.BOLD_RED),
    Severity.WARNING: Label("warning", Colour.YELLOW),
    Severity.INFO: Label("note", Colour.DIM),
}

_SHORT_COMMIT = 7
_ALWAYS_COUNTED = (Action.CREATE, Action.UPDATE, Action.DELETE)


def summary(plan: Plan) -> str:
    """Return `Plan: 3 to create, 1 to update, 1 to pause, 0 to delete. 7 unchanged.`."""
    counts = plan.counts
    parts = [
        f"{counts[action]} to {action.value}"
        for action in Action
        if action is not Action.NO_OP and (counts[action] or action in _ALWAYS_COUNTED)
    ]
    unchanged = f" {counts[Action.NO_OP]} unchanged." if counts[Action.NO_OP] else ""
    return f"Plan: {', '.join(parts)}.{unchanged}"


def base_as_text(plan: Plan) -> str:
    """Return `14 commits since 1a2b3c4, 9 days`, empty without a base."""
    source = plan.source
    if source.base is None:
        return ""
    commit = printable(source.base[:_SHORT_COMMIT])
    if not source.base_commits:
        return commit
    since = f"{several(source.base_commits, 'commit')} since {commit}"
    days = _days_between(source.base_time or "", plan.created_at)
    return f"{since}, {several(days, 'day')}" if days > 0 else since


def _days_between(start: str, end: str) -> int:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).days
    except (ValueError, TypeError):
        # A saved plan may contain any text.
        return 0


def title(change: Change) -> str:
    """Return the address, and the name where it differs from the key."""
    name = printable(change.name)
    return str(change.address) if name == change.address.key else f'{change.address} "{name}"'


def shortened(text: str, longest: int = 120) -> str:
    """Return at most `longest` characters of a text, with an ellipsis if it is cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
