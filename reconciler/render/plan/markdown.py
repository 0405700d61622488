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
from reconciler.render.plan.view import (
    heading,
    most_dangerous_first,
    rows,
    shortened,
    summary,
    title,
    why,
)
from reconciler.render.plan.words import DANGERS, SIGNS, printable

LIMIT = 65_536
_MARGIN = 600
_ICONS = {Danger.DANGER: "🛑", Danger.WARNING: "⚠️", Danger.INFO: "ℹ️"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~<>@:$])")


def plan_as_markdown(plan: Plan, *, limit: int = LIMIT) -> str:
    """At most `limit` characters: the summary, refusals, a table, then a block a change."""
    parts = [f"### {_inline(summary(plan))}\n", f"{_inline(f'Environment {heading(plan)}')}\n"]
    parts += [_refusals(plan)] if plan.refusals else []
    if plan.empty:
        parts.append("No changes: the live side is as the files say.\n")
    room = limit - _MARGIN - sum(len(part) + 1 for part in parts)
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
    return "\n".join(parts).rstrip("\n") + "\n"


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


def _refusals(plan: Plan) -> str:
    lines = ["> [!CAUTION]", "> **Refused by policy: nothing will be applied.**"]
    for each in plan.refusals[:20]:
        where = f" ({each.where})" if each.where else ""
        lines.append(f"> - `{each.rule}`{_inline(where)}: {_inline(each.message)}")
        if each.allow:
            lines.append(f">   To allow it: {_inline(each.allow)}")
    return "\n".join(lines) + "\n"


def _details(change: Change) -> str:
    lines = list(_diff(change))
    fence = _fence(lines)
    told = [
        "<details>",
        (
            f"<summary>{SIGNS[change.action]} {change.action.value} "
            f"<code>{html.escape(printable(title(change)))}</code></summary>"
        ),
        "",
        *(_consequence(each) for each in change.consequences),
        "",
        f"{fence}diff",
        *lines,
        fence,
        "</details>",
        "",
    ]
    return "\n".join(told)


def _consequence(each: Consequence) -> str:
    word = f"{_ICONS[each.severity]} **{DANGERS[each.severity]}** `{each.rule}`"
    return f"- {word}: {_inline(each.message)}"


def _diff(change: Change) -> Iterator[str]:
    for row in rows(change):
        remark = f"  # {row.remark}" if row.remark else ""
        if row.before is not None:
            sign = " " if row.after is None and row.before == "(secret)" else "-"
            yield shortened(
                f"{sign} {row.field}: {row.before}{remark if row.after is None else ''}", 500
            )
        if row.after is not None:
            yield shortened(f"+ {row.field}: {row.after}{remark}", 500)


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
    """Text that stays text: no markup, no HTML, no mention, no table cell of its own."""
    escaped = _SPECIAL.sub(lambda match: f"&#{ord(match[1])};", html.escape(printable(text)))
    # Forges look for mentions after entities are decoded: a blank of no width breaks them.
    return escaped.replace("&&#35;", "&#").replace("&#64;", "@&#8203;").replace("\n", " ")
