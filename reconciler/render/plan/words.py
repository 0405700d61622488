"""Words, signs and counts of plans, shared by all formats."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import orjson
from msgspec import Struct

from reconciler.kinds import all_kinds
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Origin, Plan, Reason, Severity
from reconciler.model.text import printable, several
from reconciler.model.values import JSON
from reconciler.render.style import Colour

ORIGINS: Mapping[Origin, str] = {
    Origin.FILES: "changed in the configuration",
    Origin.LIVE: "drift",
    Origin.BOTH: "conflict",
    Origin.UNKNOWN: "",
}
_SHOWN_REASONS = (Reason.CONFLICT, Reason.FIXED_FIELD, Reason.INTERRUPTED)
"""Reasons that neither the action nor the fields of a change show."""
_ALWAYS_COUNTED = (Action.CREATE, Action.UPDATE, Action.DELETE)
_BARE = re.compile(r"(?!-?\d+(\.\d+)?([eE]\S*)?$)\w[\w./:@+-]*( [\w./:@+-]+)*")
"""A text that reads the same without quotes: it is not a number."""
_WORDS = ("true", "false", "null")
_INTEGRATION = re.compile(r"\b(integration|authorization|bucket_credentials) (\d+)\b")
_CREATES = (Action.CREATE, Action.REPLACE)
_CHANGES = (Action.UPDATE, Action.PAUSE, Action.UNPAUSE)
_DESTROYS = (Action.DELETE, Action.REPLACE)


class Label(Struct, frozen=True):
    """A sign or word, and its colour on a terminal."""

    text: str
    colour: Colour


SIGNS: Mapping[Action, Label] = {
    Action.CREATE: Label("+", Colour.GREEN),
    Action.UPDATE: Label("~", Colour.YELLOW),
    Action.REPLACE: Label("-/+", Colour.MAGENTA),
    Action.PAUSE: Label("‖", Colour.CYAN),
    Action.UNPAUSE: Label("▶", Colour.CYAN),
    Action.DELETE: Label("-", Colour.RED),
    Action.NO_OP: Label(" ", Colour.DIM),
}


SEVERITIES: Mapping[Severity, Label] = {
    Severity.DANGER: Label("!!", Colour.BOLD_RED),
    Severity.WARNING: Label("!", Colour.YELLOW),
    Severity.INFO: Label("i", Colour.DIM),
}


def counted(plan: Plan, *, always: Collection[Action] = ()) -> dict[Action, str]:
    """Return `3 to create` for every action of the plan, and for those that `always` count."""
    counts = plan.counts
    return {
        action: f"{counts[action]:,} to {action.value}"
        for action in Action
        if action is not Action.NO_OP and (counts[action] or action in always)
    }


def summary(plan: Plan) -> str:
    """Return `Plan: 3 to create, 1 to update, 0 to delete, 7 unchanged (11 resources).`.

    Changes are counted by action. A resource that is updated and paused is one resource.
    """
    unchanged = plan.counts[Action.NO_OP]
    parts = [*counted(plan, always=_ALWAYS_COUNTED).values()]
    parts += [f"{unchanged:,} unchanged"] if unchanged else []
    return f"Plan: {', '.join(parts)} ({resources(plan)})."


def resources(plan: Plan) -> str:
    """Return the number of resources of a plan: `1 resource`, `1,204 resources`."""
    count = len({change.address for change in plan.changes})
    word = "selected resource" if plan.selection.partial else "resource"
    return several(count, word)


def counted_nouns(count: int, one: str, more: str) -> str:
    """Return a number with thousands separators, and its noun."""
    return f"{count:,} {one if count == 1 else more}"


def nouns(kind: str, count: int) -> str:
    """Return a number of objects of a kind: `1 batch export`, `297 batch exports`."""
    collections = {known.name: known.collection for known in all_kinds()}
    one, more = printable(kind), printable(collections.get(kind, f"{kind}s"))
    return counted_nouns(count, one.replace("_", " "), more.replace("_", " "))


def title(change: Change) -> str:
    """Return the address, the name where it differs from the key, and the place of a deletion."""
    name, place = printable(change.name), deleted_in(change)
    named = "" if name == change.address.key else f' "{name}"'
    return f"{change.address}{named}{place}"


def deleted_in(change: Change) -> str:
    """Return ` in Web` for a deletion, "" for other actions."""
    parent = parent_of(change) if change.action is Action.DELETE else ""
    return f" in {parent}" if parent else ""


def shown_reasons(change: Change) -> tuple[str, ...]:
    """Return the reasons of a change that it does not show otherwise."""
    return tuple(reason.meaning for reason in change.reasons if reason in _SHOWN_REASONS)


def parent_of(change: Change) -> str:
    """Return the key, name or id of the parent, "" without one."""
    if change.parent_name is not None:
        return printable(change.parent_name)
    if change.parent is not None:
        return printable(str(change.parent))
    return printable(change.parent_id or "")


def bare(value: JSON) -> str:
    """Return a value on one line, as JSON, and a simple text without quotes."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value not in _WORDS:
        return value
    return json_line(value)


def json_line(value: JSON) -> str:
    """Return a value as printable JSON on one line."""
    return printable(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


class Totals(Struct, frozen=True):
    """The numbers of resources. A replacement is created and destroyed."""

    create: int
    change: int
    destroy: int


def totals_of(plan: Plan) -> Totals:
    """Return how many resources a plan creates, changes and destroys."""
    return Totals(*(_count(plan, actions) for actions in (_CREATES, _CHANGES, _DESTROYS)))


def _count(plan: Plan, actions: tuple[Action, ...]) -> int:
    return len({change.address for change in plan.effective if change.action in actions})


def with_names(text: str, change: Change) -> str:
    """Return a text with the names of integrations before their ids, as far as they are known."""
    if not change.integrations:
        return text
    return _INTEGRATION.sub(lambda at: f"{at[1]} {change.integrations.get(at[2], at[2])}", text)
