"""A plan for a terminal, field by field. Colour is the caller's decision."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model.change import Action, Change, Danger
from reconciler.model.plan import Plan, Refusal
from reconciler.model.wording import printable
from reconciler.render.plan.view import ABSENT, Row, heading, rows, shortened, summary, title, why
from reconciler.render.plan.words import DANGERS, SIGNS

_COLOURS = {
    Action.CREATE: "32",
    Action.UPDATE: "33",
    Action.REPLACE: "35",
    Action.PAUSE: "36",
    Action.UNPAUSE: "36",
    Action.DELETE: "31",
    Action.NO_OP: "2",
}
_DANGER_COLOURS = {Danger.DANGER: "1;31", Danger.WARNING: "33", Danger.INFO: "2"}
_LINE_COLOURS = {"-": "31", "+": "32", " ": "2"}
_LONGEST_TITLE = 200
_NARROWEST = 40
_FOLDED = 3


@dataclass(frozen=True, slots=True)
class Style:
    """How a text is drawn: with colour or without, and how wide at most."""

    colour: bool = False
    width: int = 100
    show_unmanaged: bool = False

    def paint(self, code: str, text: str) -> str:
        """The text in a colour, where colours are wanted."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def plan_as_text(plan: Plan, style: Style) -> str:
    """The whole plan, ending with the summary line."""
    blocks = [_heading(plan, style)]
    blocks += ["\n".join(_change(each, style)) for each in plan.effective]
    blocks += ["\n".join(block) for block in _remarks(plan, style) if block]
    if plan.empty:
        blocks.append("No changes: the live side is as the files say.")
    blocks.append(style.paint("1", summary(plan)))
    return "\n\n".join(blocks) + "\n"


def _heading(plan: Plan, style: Style) -> str:
    told = f"Environment {heading(plan)}"
    if plan.source.base is not None:
        told += f"\nCompared with git base {plan.source.base[:12]}"
    return style.paint("2", told)


def _change(change: Change, style: Style) -> Iterator[str]:
    sign = style.paint(_COLOURS[change.action], SIGNS[change.action])
    name = style.paint("1", shortened(title(change), _LONGEST_TITLE))
    yield f"{sign} {change.action.value} {name}"
    yield from _wrapped(why(change), "    ", style, code="2")
    for row in _folded(change):
        yield from _field(row, style)
    for each in change.consequences:
        label = f"{DANGERS[each.severity]} [{each.rule}]: "
        yield from _wrapped(label + each.message, "    ! ", style, _DANGER_COLOURS[each.severity])


def _folded(change: Change) -> list[Row]:
    """What is deleted is told in a few lines: the plan file has it all."""
    found = list(rows(change))
    if change.action is not Action.DELETE:
        return found
    return [row for row in found if row.field in ("name", "interval", "destination.type")][:_FOLDED]


def _field(row: Row, style: Style) -> Iterator[str]:
    remark = f"  ({row.remark})" if row.remark else ""
    name = f"    {row.field}: "
    if row.lines:
        yield f"{name.rstrip()}{remark}"
        for line in row.lines:
            yield from _wrapped(line[2:], f"      {line[:2]}", style, _LINE_COLOURS[line[0]])
        return
    for sign, value, other in (("-", row.before, row.after), ("+", row.after, row.before)):
        if other == ABSENT:
            name = f"  {sign} {row.field}: "
            yield from _wrapped(f"{value}{remark}", name, style, _LINE_COLOURS[sign])
            return
    if row.before is None or row.after is None:
        value = row.after if row.after is not None else row.before
        yield from _wrapped(f"{value or ''}{remark}", name, style)
        return
    line = f"{row.before} → {row.after}{remark}"
    if len(name) + len(line) <= style.width:
        yield f"{name}{line}"
        return
    # Too long for one line: both sides one below the other.
    yield f"{name.rstrip()}{remark}"
    yield from _wrapped(row.before, "      - ", style, "31")
    yield from _wrapped(row.after, "      + ", style, "32")


def _wrapped(text: str, prefix: str, style: Style, code: str = "") -> Iterator[str]:
    width = max(_NARROWEST, style.width)
    indent = " " * min(len(prefix), 8)
    lines = textwrap.wrap(
        shortened(printable(text), 2_000),
        width=width,
        initial_indent=prefix,
        subsequent_indent=indent,
        # References and commands stay whole, to be copied: a terminal wraps what is too long.
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    for line in lines or ([prefix.rstrip()] if prefix.strip() and not text else []):
        yield style.paint(code, line) if code else line


def _remarks(plan: Plan, style: Style) -> Iterator[list[str]]:
    yield [line for note in plan.notes for line in _wrapped(note.message, "Note: ", style, "2")]
    yield list(_unmanaged(plan, style))
    yield [line for each in plan.refusals for line in _refusal(each, style)]


def _unmanaged(plan: Plan, style: Style) -> Iterator[str]:
    if not plan.unmanaged:
        return
    count = len(plan.unmanaged)
    things = "object is" if count == 1 else "objects are"
    if not style.show_unmanaged:
        yield from _wrapped(
            f"{count} live {things} not in the files and left alone (--show-unmanaged lists them).",
            "",
            style,
            "2",
        )
        return
    yield f"{count} live {things} not in the files and left alone:"
    for each in plan.unmanaged:
        place = f" in {shortened(printable(each.parent_name))}" if each.parent_name else ""
        yield printable(f'    {each.address} "{shortened(each.name)}"') + place


def _refusal(each: Refusal, style: Style) -> Iterator[str]:
    yield from _wrapped(f"[{each.rule}] {each.message}", "Refused: ", style, "1;31")
    if each.where is not None:
        yield from _wrapped(f"the rule stands at {each.where}", "    ", style)
    shown = ", ".join(str(address) for address in each.addresses[:5])
    more = f" and {len(each.addresses) - 5} more" if len(each.addresses) > 5 else ""
    if shown:
        yield from _wrapped(f"{shown}{more}", "    ", style)
    if each.allow is not None:
        yield from _wrapped(f"to allow it: {each.allow}", "    ", style)
