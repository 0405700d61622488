"""Words, signs, counts and durations, shared by all formats."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import ceil

import orjson
from msgspec import Struct

from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Origin, Plan, Reason, Severity
from reconciler.model.text import named, printable, several, shortened
from reconciler.model.values import JSON
from reconciler.render.options import Colour

_LONGEST_NAME, _LONGEST_ADDRESS = 30, 48
"""In the first column of a table. An address is pasted into commands."""


class Label(Struct, frozen=True):
    """A sign or word, and its colour on a terminal."""

    text: str
    colour: Colour


ORIGINS: Mapping[Origin, str] = {
    Origin.FILES: "changed in the configuration",
    Origin.LIVE: "drift",
    Origin.BOTH: "conflict",
    Origin.UNKNOWN: "",
}
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
_SHOWN_REASONS = (Reason.CONFLICT, Reason.FIXED_FIELD)
"""Reasons that neither the action nor the fields of a change show."""
_LONGEST_NAME = 80
_ALWAYS_COUNTED = (Action.CREATE, Action.UPDATE, Action.DELETE)
_BARE = re.compile(r"(?!-?\d+(\.\d+)?([eE]\S*)?$)\w[\w./:@+-]*( [\w./:@+-]+)*")
"""A text that reads the same without quotes: it is not a number."""
_WORDS = ("true", "false", "null")
_INTEGRATION = re.compile(r"\b(integration|authorization|bucket_credentials) (\d+)\b")
_TOTALS = (
    (Action.CREATE, Action.REPLACE),
    (Action.UPDATE, Action.PAUSE, Action.UNPAUSE),
    (Action.DELETE, Action.REPLACE),
)


def counted(plan: Plan, *, always: Collection[Action] = ()) -> dict[Action, str]:
    """Return `3 to create` for every action of the plan, and for those that `always` count."""
    counts = plan.counts
    return {
        action: f"{counts[action]:,} to {action.value}"
        for action in counts
        if counts[action] or action in always
    }


def summary(plan: Plan) -> str:
    """Return `Plan: 3 to create, 1 to update, 0 to delete, 7 unchanged (11 resources).`.

    Changes are counted by action. A resource that is updated and paused is one resource.
    """
    parts = [*counted(plan, always=_ALWAYS_COUNTED).values()]
    parts += [f"{plan.unchanged:,} unchanged"] if plan.unchanged else []
    return f"Plan: {', '.join(parts)} ({resources(plan)})."


def resources(plan: Plan) -> str:
    """Return the number of resources of a plan: `1 resource`, `1,204 resources`."""
    count = len({change.address for change in plan.effective}) + plan.unchanged
    word = "selected resource" if plan.selection.partial else "resource"
    return several(count, word)


def totals_of(plan: Plan) -> tuple[int, ...]:
    """Return how many resources a plan creates, changes and destroys. A replacement is both."""
    return tuple(
        len({change.address for change in plan.effective if change.action in actions})
        for actions in _TOTALS
    )


def counted_nouns(count: int, one: str, more: str) -> str:
    """Return a number with thousands separators, and its noun."""
    return f"{count:,} {one if count == 1 else more}"


def nouns(kind: str, count: int) -> str:
    """Return a number of objects of a kind: `1 batch export`, `297 batch exports`."""
    known = kinds_by_name().get(kind)
    one, more = printable(kind), printable(known.collection if known is not None else f"{kind}s")
    return counted_nouns(count, one.replace("_", " "), more.replace("_", " "))


def title(change: Change) -> str:
    """Return the address, the name where it differs from the key, and the place of a deletion."""
    name, place = printable(change.name), deleted_in(change)
    # A long name, or one with many spaces, must not move away what follows.
    short = shortened(" ".join(name.split()), _LONGEST_NAME)
    named = "" if name == change.address.key else f' "{short}"'
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


def with_names(text: str, change: Change) -> str:
    """Return a text with the names of integrations before their ids, as far as they are known."""
    if not change.integrations:
        return text
    return _INTEGRATION.sub(lambda at: f"{at[1]} {change.integrations.get(at[2], at[2])}", text)


def duration_as_text(seconds: float) -> str:
    """Return `41 s`, `1 min 20 s` or `2 h 5 min`, rounded up."""
    whole = max(0, ceil(seconds))
    if whole < 60:
        return f"{whole} s"
    large, small = ("min", "s") if whole < 3_600 else ("h", "min")
    first, second = divmod(whole if whole < 3_600 else ceil(whole / 60), 60)
    return f"{first} {large} {second} {small}" if second else f"{first} {large}"


def estimate_as_text(
    calls: int, seconds: float, *, limit: object = None, beyond_hour: bool = False
) -> str:
    """Return `606 calls, about 1 min 20 s at 480 a minute`.

    `limit` is the limit that slows the calls down, if any. `beyond_hour`: they are more than may be
    sent in an hour.
    """
    text = f"{several(calls, 'call')}, about {duration_as_text(seconds)}"
    text += f" at {limit}" if limit is not None else ""
    return f"{text}; more than the hourly limit allows at once" if beyond_hour else text


def short_count(count: int) -> str:
    """Return a number with at most four digits: 950, 1.2 k, 28 M."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return str(count)


def label_of(address: Address, name: str) -> str:
    """Return the address of a resource, or the name in quotes of what no resource claims."""
    if address.is_unmanaged:
        return named(shortened(name, _LONGEST_NAME))
    return shortened(str(address), _LONGEST_ADDRESS)
