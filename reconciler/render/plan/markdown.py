"""A plan for a pull request comment: dangers first, built to a budget, nothing forged.

A comment may have 65,536 characters. The parts are added in order of importance while they fit;
what was left out is counted, so that the plans which matter most never fail to show.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from reconciler.model.change import Change, Consequence, Danger
from reconciler.model.plan import Plan
from reconciler.model.wording import printable
from reconciler.render.plan.view import (
    ABSENT,
    heading,
    most_dangerous_first,
    rows,
    shortened,
    summary,
    title,
    why,
)
from reconciler.render.plan.words import DANGERS, SIGNS

LIMIT = 65_536
_MARGIN = 600
_LONGEST_LINE = 500
_LONGEST_BLOCK = 8_000
_ICONS = {Danger.DANGER: "🛑", Danger.WARNING: "⚠️", Danger.INFO: "ℹ️"}
_SPECIAL = re.compile(
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\.", re.IGNORECASE
)


def plan_as_markdown(plan: Plan, *, limit: int = LIMIT) -> str:
    """At most `limit` characters: the summary, refusals, a table, then a block a change."""
    where = _inline(shortened(f"Environment {heading(plan)}", _LONGEST_LINE))
    parts = [f"### {_inline(summary(plan))}\n", f"{where}\n"]
    if plan.empty:
        parts.append("No changes: the live side is as the files say.\n")
    room = limit - _MARGIN - sum(len(part) + 1 for part in parts)
    refused, room, unnamed = _within(_refusals(plan), room // 3, room)
    parts += ["\n".join([*refused, *([f"> - … and {unnamed} more"] if unnamed else []), ""])]
    ordered = most_dangerous_first(plan.effective)
    table, room, untold = _within(_table(ordered), room // 2 + 1, room)
    parts += ["\n".join(table) + "\n"] if len(table) > 2 else []
    if untold:
        parts.append(f"… and {untold} more changes that the table has no room for\n")
    details, room, missing = _within((_details(change) for change in ordered), room, room)
    parts += details
    if missing:
        parts.append(f"\n{missing} changes are left out here: the plan file has all of them.\n")
    notes, _, _ = _within(_notes(plan), room, room)
    parts += notes
    return "\n".join(part for part in parts if part).rstrip("\n") + "\n"


def _within(pieces: Iterator[str], budget: int, room: int) -> tuple[list[str], int, int]:
    """The pieces that fit a budget, the room that is left of all, and how many did not fit."""
    kept: list[str] = []
    left_out = 0
    for piece in pieces:
        cost = len(piece) + 1
        if left_out or cost > budget:
            left_out += 1
            continue
        kept.append(piece)
        budget -= cost
        room -= cost
    return kept, room, left_out


def _table(changes: list[Change]) -> Iterator[str]:
    yield "| | action | resource | why |"
    yield "|---|---|---|---|"
    for change in changes:
        icon = _ICONS[change.danger] if change.danger is not None else ""
        yield (
            f"| {icon} | {SIGNS[change.action]} {change.action.value} | "
            f"{_inline(shortened(title(change)))} | {_inline(why(change))} |"
        )


def _refusals(plan: Plan) -> Iterator[str]:
    if plan.refusals:
        yield "> [!CAUTION]\n> **Refused by policy: nothing will be applied.**"
    for each in plan.refusals:
        where = f" ({each.where})" if each.where else ""
        told = f"{where}: {shortened(each.message, _LONGEST_LINE)}"
        way = shortened(each.allow or "", _LONGEST_LINE)
        allow = f"\n>   To allow it: {_inline(way)}" if way else ""
        yield f"> - `{each.rule}`{_inline(told)}{allow}"


def _details(change: Change) -> str:
    lines = list(_cut(_diff(change)))
    fence = _fence(lines)
    told = [
        "<details>",
        (
            f"<summary>{SIGNS[change.action]} {change.action.value} "
            f"<code>{html.escape(shortened(title(change)))}</code></summary>"
        ),
        "",
        *(_consequence(each) for each in change.consequences),
        *([""] if change.consequences else []),
        *([f"{fence}diff", *lines, fence] if lines else []),
        "</details>",
        "",
    ]
    return "\n".join(told)


def _cut(lines: Iterator[str]) -> Iterator[str]:
    """The lines that one block may have: a huge change must not push out all others."""
    room = _LONGEST_BLOCK
    for line in lines:
        room -= len(line)
        if room < 0:
            yield f"  … {1 + sum(1 for _ in lines)} more lines: the plan file has all of them"
            return
        yield line


def _consequence(each: Consequence) -> str:
    word = f"{_ICONS[each.severity]} **{DANGERS[each.severity]}** `{each.rule}`"
    return f"- {word}: {_inline(shortened(each.message, _LONGEST_LINE))}"


def _diff(change: Change) -> Iterator[str]:
    for row in rows(change):
        remark = f"  # {row.remark}" if row.remark else ""
        before, after = row.before not in (None, ABSENT), row.after not in (None, ABSENT)
        if row.lines:
            yield shortened(f"  {row.field}:{remark}", _LONGEST_LINE)
            for line in row.lines:
                yield shortened(f"{line[:2]}  {line[2:]}", _LONGEST_LINE)
            continue
        if before:
            sign = " " if row.after is None and row.before == "(secret)" else "-"
            yield shortened(
                f"{sign} {row.field}: {row.before}{'' if after else remark}", _LONGEST_LINE
            )
        if after:
            yield shortened(f"+ {row.field}: {row.after}{remark}", _LONGEST_LINE)


def _fence(lines: list[str]) -> str:
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    return "`" * max(3, longest + 1)


def _notes(plan: Plan) -> Iterator[str]:
    for note in plan.notes:
        yield f"- {_inline(note.message)}"
    if plan.unmanaged:
        count = len(plan.unmanaged)
        things = "object is" if count == 1 else "objects are"
        yield f"- {count} live {things} not in the files and left alone"


def _inline(text: str) -> str:
    """Text that stays text: no markup, no HTML, no link, no mention, no table cell of its own."""
    return _SPECIAL.sub(_entity, printable(text))


def _entity(match: re.Match[str]) -> str:
    # Forges look for mentions and issues after entities are decoded: a blank of no width breaks
    # them.
    broken = "&#8203;" if match[0] in "@#" else ""
    return f"&#{ord(match[0])};{broken}"
