"""A plan as rows: the decisions that all formats share. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from reconciler.model.change import Action, Change, FieldChange
from reconciler.model.plan import Plan
from reconciler.model.values import JSON, MISSING, SecretRef, path_text
from reconciler.render.plan.words import ORIGINS, REASONS, SECRET_USES, printable

_ALWAYS = (Action.CREATE, Action.UPDATE, Action.DELETE)
_COUNTED = (
    Action.CREATE,
    Action.UPDATE,
    Action.REPLACE,
    Action.PAUSE,
    Action.UNPAUSE,
    Action.DELETE,
)
_LONG = 120


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a change: a field with both sides as text, None where there is none."""

    field: str
    before: str | None
    after: str | None
    remark: str = ""


def summary(plan: Plan) -> str:
    """`Plan: 3 to create, 1 to update, 1 to pause, 0 to delete, 7 unchanged`."""
    counts = plan.counts
    parts = [
        f"{counts[action]} to {action.value}"
        for action in _COUNTED
        if counts[action] or action in _ALWAYS
    ]
    return f"Plan: {', '.join(parts)}, {counts[Action.NO_OP]} unchanged"


def heading(plan: Plan) -> str:
    """Where the plan is for."""
    source = plan.source
    where = f"{source.environment} ({source.base_url}, organization {source.organization})"
    return printable(where)


def title(change: Change) -> str:
    """The address, and the name where it says more."""
    name = printable(change.name)
    return str(change.address) if name == change.address.key else f'{change.address} "{name}"'


def why(change: Change) -> str:
    """The reasons in words."""
    return "; ".join(REASONS[reason] for reason in change.reasons)


def rows(change: Change) -> Iterator[Row]:
    """The fields of a change, secrets with where they come from and why they are (not) sent."""
    secret_paths = {note.path for note in change.secrets}
    for each in change.fields:
        if each.secret and (each.path in secret_paths):
            continue
        yield _row(change, each)
    for note in change.secrets:
        after = "(secret)" if note.use.sent else None
        remark = f"{note.ref}, {SECRET_USES[note.use]}"
        yield Row(path_text(note.path), None if note.use.sent else "(secret)", after, remark)


def _row(change: Change, each: FieldChange) -> Row:
    remarks = [ORIGINS[each.origin]] if change.action is not Action.CREATE else []
    if each.reset:
        remarks = ["removed from the files: back to the default"]
    if each.secret:
        return Row(path_text(each.path), None, "(secret)", ", ".join(filter(None, remarks)))
    before = shown(each.before) if each.before is not MISSING else None
    after = shown(each.after) if each.after is not MISSING else None
    return Row(path_text(each.path), before, after, ", ".join(filter(None, remarks)))


def shown(value: JSON) -> str:
    """A value on one line, as JSON, that can't forge output."""
    return printable(orjson.dumps(_without_references(value), option=orjson.OPT_SORT_KEYS).decode())


def shortened(text: str, longest: int = _LONG) -> str:
    """At most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _without_references(value: JSON) -> JSON:
    if isinstance(value, SecretRef):
        return "(secret)"
    if isinstance(value, Mapping):
        return {str(key): _without_references(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_references(item) for item in value]
    return value


def most_dangerous_first(changes: Sequence[Change]) -> list[Change]:
    """Deletions and replacements, then by the worst consequence, then in the plan's order."""

    def key(change: Change) -> tuple[bool, int]:
        return (not change.action.destructive, change.danger.rank if change.danger else 3)

    return sorted(changes, key=key)
