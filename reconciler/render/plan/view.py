"""A plan as rows: the decisions that all formats share. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from reconciler.model.change import Action, Change, FieldChange
from reconciler.model.plan import Plan
from reconciler.model.values import JSON, MISSING, Path, SecretRef, path_text
from reconciler.model.wording import printable
from reconciler.render.plan.inside import parts, text_lines, told_in_lines, within_reason
from reconciler.render.plan.words import ORIGINS, REASONS, SECRET_USES

_ALWAYS = (Action.CREATE, Action.UPDATE, Action.DELETE)
_COUNTED = (
    Action.CREATE,
    Action.UPDATE,
    Action.REPLACE,
    Action.PAUSE,
    Action.UNPAUSE,
    Action.DELETE,
)
_IN_PLACE = (Action.UPDATE, Action.REPLACE, Action.PAUSE, Action.UNPAUSE)
_LONG = 120
_MOST_PARTS = 40

ABSENT = "(absent)"
"""What stands for a side that is not there, in a change of what is: values are JSON, in quotes."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field of a change with both sides as text, None where there is nothing to compare with.

    With `lines` the value is told line by line instead, each with its sign (-, + or a blank).
    """

    field: str
    before: str | None
    after: str | None
    remark: str = ""
    lines: tuple[str, ...] = ()


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
    return "; ".join(dict.fromkeys(REASONS[reason] for reason in change.reasons))


def rows(change: Change) -> Iterator[Row]:
    """The fields of a change, secrets with where they come from and why they are (not) sent."""
    secret_paths = {note.path for note in change.secrets}
    for each in change.fields:
        if each.secret and (each.path in secret_paths):
            continue
        yield from _of_field(change, each)
    for note in change.secrets:
        after = "(secret)" if note.use.sent else None
        remark = printable(f"{note.ref}, {SECRET_USES[note.use]}")
        yield Row(
            printable(path_text(note.path)), None if note.use.sent else "(secret)", after, remark
        )


def _of_field(change: Change, each: FieldChange) -> Iterator[Row]:
    remarks = [ORIGINS[each.origin]] if change.action is not Action.CREATE else []
    if each.reset:
        remarks = ["removed from the files: back to the default"]
    remark = ", ".join(filter(None, remarks))
    name = printable(path_text(each.path))
    if each.secret:
        yield Row(name, None, "(secret)", remark)
        return
    before, after = _without_references(each.before), _without_references(each.after)
    found = parts(before, after) or [((), before, after)]
    for path, old, new in found[:_MOST_PARTS]:
        yield _row(change, (*each.path, *path), old, new, remark=remark)
    if len(found) > _MOST_PARTS:
        yield Row(name, None, f"… {len(found) - _MOST_PARTS} more differences")


def _row(change: Change, path: Path, before: JSON, after: JSON, *, remark: str) -> Row:
    name = printable(path_text(path))
    nothing = ABSENT if change.action in _IN_PLACE else None
    old = shown(before) if before is not MISSING else nothing
    new = shown(after) if after is not MISSING else nothing
    return Row(name, old, new, remark, _lines(before, after))


def _lines(before: JSON, after: JSON) -> tuple[str, ...]:
    if before is not MISSING and after is not MISSING:
        return text_lines(before, after)
    sign, value = ("+", after) if before is MISSING else ("-", before)
    told = told_in_lines(value) if value is not MISSING else None
    return within_reason(f"{sign} {line}" for line in told) if told is not None else ()


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
