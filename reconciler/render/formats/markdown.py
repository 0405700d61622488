"""A plan for a pull request comment: the worst first, built to a budget, nothing forged.

A comment may have 65,536 characters. The parts are added in order of importance while they fit;
what was left out is counted, so that the plans which matter most never fail to show.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from reconciler.model.change import Consequence, Danger
from reconciler.model.plan import Plan
from reconciler.model.wording import printable
from reconciler.render.formats.base import Format
from reconciler.render.plan.document import Document, Entry, document_of
from reconciler.render.plan.fields import FieldLine, LineKind
from reconciler.render.plan.words import SEVERITIES, SIGNS, shortened

LIMIT = 65_536
_MARGIN = 600
_LONGEST_LINE = 500
_LONGEST_BLOCK = 8_000
_ICONS = {Danger.DANGER: "🛑", Danger.WARNING: "⚠️", Danger.INFO: "ℹ️"}
_BEFORE_SIGNS = {
    LineKind.KEPT: " ",
    LineKind.LOST: "-",
    LineKind.REMOVED: "-",
    LineKind.CHANGED: "-",
}
_AFTER_KINDS = (LineKind.SET, LineKind.ADDED, LineKind.CHANGED)
_SPECIAL = re.compile(
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\.", re.IGNORECASE
)


def plan_as_markdown(plan: Plan, *, limit: int = LIMIT) -> str:
    """Return the summary, violations, a table, then a block for each change.

    At most `limit` characters.
    """
    document = document_of(plan)
    environment = _inline(shortened(f"Environment {document.environment}", _LONGEST_LINE))
    parts = [f"### {_inline(document.summary)}\n", f"{environment}\n"]
    if document.no_changes:
        parts.append(f"{document.no_changes}\n")
    room = limit - _MARGIN - sum(len(part) + 1 for part in parts)
    violations, room, missing = _within(_violations(document), room // 3, room)
    more = [f"> - … and {missing} more"] if missing else []
    parts += ["\n".join([*violations, *more, ""])]
    entries = document.worst_first
    table, room, missing = _within(_table(entries), room // 2 + 1, room)
    parts += ["\n".join(table) + "\n"] if len(table) > 2 else []
    if missing:
        parts.append(f"… and {missing} more changes that the table has no room for\n")
    details, room, missing = _within((_details(entry) for entry in entries), room, room)
    parts += details
    if missing:
        parts.append(f"\n{missing} changes are left out here: the plan file has all of them.\n")
    notes, _, _ = _within(_notes(document), room, room)
    parts += notes
    return "\n".join(part for part in parts if part).rstrip("\n") + "\n"


def _within(pieces: Iterator[str], budget: int, room: int) -> tuple[list[str], int, int]:
    """Return the pieces that fit a budget, the room left of all, and how many did not fit."""
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


def _table(entries: tuple[Entry, ...]) -> Iterator[str]:
    yield "| | action | resource | why |"
    yield "|---|---|---|---|"
    for entry in entries:
        action, severity = entry.change.action, entry.change.danger
        icon = _ICONS[severity] if severity is not None else ""
        yield (
            f"| {icon} | {SIGNS[action]} {action.value} | "
            f"{_inline(shortened(entry.title))} | {_inline(entry.reason)} |"
        )


def _violations(document: Document) -> Iterator[str]:
    if document.violations:
        yield "> [!CAUTION]\n> **Refused by policy: nothing will be applied.**"
    for violation in document.violations:
        place = f" ({violation.at})" if violation.at is not None else ""
        message = f"{place}: {shortened(violation.message, _LONGEST_LINE)}"
        hint = shortened(violation.allow or "", _LONGEST_LINE)
        allow = f"\n>   To allow it: {_inline(hint)}" if hint else ""
        yield f"> - `{violation.rule}`{_inline(message)}{allow}"


def _details(entry: Entry) -> str:
    action, consequences = entry.change.action, entry.change.consequences
    lines = list(_cut(line for field in entry.lines for line in _diff(field)))
    fence = _fence(lines)
    block = [
        "<details>",
        (
            f"<summary>{SIGNS[action]} {action.value} "
            f"<code>{html.escape(shortened(entry.title))}</code></summary>"
        ),
        "",
        *(_consequence(consequence) for consequence in consequences),
        *([""] if consequences else []),
        *([f"{fence}diff", *lines, fence] if lines else []),
        "</details>",
        "",
    ]
    return "\n".join(block)


def _cut(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines that one block may have: a huge change must not push out all others."""
    room = _LONGEST_BLOCK
    for line in lines:
        room -= len(line)
        if room < 0:
            yield f"  … {1 + sum(1 for _ in lines)} more lines: the plan file has all of them"
            return
        yield line


def _consequence(consequence: Consequence) -> str:
    severity = consequence.severity
    word = f"{_ICONS[severity]} **{SEVERITIES[severity]}** `{consequence.rule}`"
    return f"- {word}: {_inline(shortened(consequence.message, _LONGEST_LINE))}"


def _diff(line: FieldLine) -> Iterator[str]:
    remark = f"  # {line.remark}" if line.remark else ""
    if line.hunk:
        yield shortened(f"  {line.name}:{remark}", _LONGEST_LINE)
        for part in line.hunk:
            yield shortened(f"{part[:2]}  {part[2:]}", _LONGEST_LINE)
        return
    if line.kind in _BEFORE_SIGNS:
        end = "" if line.kind in _AFTER_KINDS else remark
        before = f"{_BEFORE_SIGNS[line.kind]} {line.name}: {line.before}{end}"
        yield shortened(before, _LONGEST_LINE)
    if line.kind in _AFTER_KINDS:
        yield shortened(f"+ {line.name}: {line.after}{remark}", _LONGEST_LINE)


def _fence(lines: list[str]) -> str:
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    return "`" * max(3, longest + 1)


def _notes(document: Document) -> Iterator[str]:
    yield from (f"- {_inline(note)}" for note in document.notes)
    if document.unmanaged:
        yield f"- {document.unmanaged}"


def _inline(text: str) -> str:
    """Return text that stays text: no markup, HTML, link, mention or table cell of its own."""
    return _SPECIAL.sub(_entity, printable(text))


def _entity(match: re.Match[str]) -> str:
    # Forges look for mentions and issues after entities are decoded: a zero-width space breaks
    # them.
    broken = "&#8203;" if match[0] in "@#" else ""
    return f"&#{ord(match[0])};{broken}"


FORMAT = Format("markdown", plan=lambda plan, _: plan_as_markdown(plan))
