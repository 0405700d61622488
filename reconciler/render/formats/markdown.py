"""A plan as a comment of a pull request, the worst changes first.

A comment may have 65,536 characters. Parts are added in order of importance while they fit, and
what does not fit is counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from reconciler.model.change import Consequence, Severity
from reconciler.model.plan import Plan
from reconciler.model.wording import printable, several
from reconciler.render.formats.base import Format
from reconciler.render.plan.document import Document, Entry, document_of
from reconciler.render.plan.fields import FieldLine, LineKind
from reconciler.render.plan.words import SEVERITIES, SIGNS, shortened

LIMIT = 65_536
_MARGIN = 600
_LONGEST_LINE = 500
_LONGEST_BLOCK = 8_000
_ICONS = {Severity.DANGER: "🛑", Severity.WARNING: "⚠️", Severity.INFO: "ℹ️"}
_SPECIAL = re.compile(
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\.", re.IGNORECASE
)


def plan_as_markdown(plan: Plan) -> str:
    """Return the summary, violations, a table, then a block for every change."""
    document = document_of(plan)
    environment = _inline(shortened(f"Environment {document.environment}", _LONGEST_LINE))
    parts = [f"### {_inline(document.summary)}\n", f"{environment}\n"]
    if document.no_changes:
        parts.append(f"{document.no_changes}\n")
    space = LIMIT - _MARGIN - sum(len(part) + 1 for part in parts)
    violations, space, missing = _within(_violations(document), space // 3, space)
    violations += [f"> - … and {missing} more"] if missing else []
    parts.append("\n".join([*violations, ""]))
    entries = document.worst_first
    table, space, missing = _within(_table(entries), space // 2 + 1, space)
    parts += ["\n".join(table) + "\n"] if len(table) > 2 else []
    if missing:
        parts.append(f"… and {several(missing, 'more change')} not in this table\n")
    details, space, missing = _within(map(_details, entries), space, space)
    parts += details
    if missing:
        parts.append(f"\n{several(missing, 'change')} not shown. The plan file has all changes.\n")
    notes, _, _ = _within(_notes(document), space, space)
    parts += notes
    return "\n".join(part for part in parts if part).rstrip("\n") + "\n"


def _within(pieces: Iterator[str], budget: int, space: int) -> tuple[list[str], int, int]:
    """Return the pieces before the budget ends, the space left, and how many pieces are missing."""
    kept: list[str] = []
    for piece in pieces:
        cost = len(piece) + 1
        if cost > budget:
            return kept, space, 1 + sum(1 for _ in pieces)
        kept.append(piece)
        budget -= cost
        space -= cost
    return kept, space, 0


def _table(entries: tuple[Entry, ...]) -> Iterator[str]:
    yield "| | action | resource | why |"
    yield "|---|---|---|---|"
    for entry in entries:
        action, severity = entry.change.action, entry.change.severity
        icon = _ICONS[severity] if severity is not None else ""
        yield (
            f"| {icon} | {SIGNS[action]} {action.value} | "
            f"{_inline(shortened(entry.title))} | {_inline(entry.reason)} |"
        )


def _violations(document: Document) -> Iterator[str]:
    if document.violations:
        yield "> [!CAUTION]\n> **Refused by policy. Nothing will be applied.**"
    for violation in document.violations:
        place = f" ({violation.at})" if violation.at is not None else ""
        message = f"{place}: {shortened(violation.message, _LONGEST_LINE)}"
        hint = _inline(shortened(violation.allow or "", _LONGEST_LINE))
        allow = f"\n>   hint: {hint}" if hint else ""
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
    """Yield the lines that fit a block, so that a huge change does not displace all others."""
    space = _LONGEST_BLOCK
    for line in lines:
        space -= len(line)
        if space < 0:
            yield f"  … {1 + sum(1 for _ in lines)} more lines in the plan file"
            return
        yield line


def _consequence(consequence: Consequence) -> str:
    severity = consequence.severity
    word = f"{_ICONS[severity]} **{SEVERITIES[severity]}** `{consequence.rule}`"
    return f"- {word}: {_inline(shortened(consequence.message, _LONGEST_LINE))}"


def _diff(line: FieldLine) -> Iterator[str]:
    if line.hunk:
        yield shortened(f"  {line.name}:{line.comment}", _LONGEST_LINE)
        for part in line.hunk:
            yield shortened(f"{part[:2]}  {part[2:]}", _LONGEST_LINE)
        return
    if line.before:
        sign = " " if line.kind is LineKind.KEPT else "-"
        comment = "" if line.after else line.comment
        yield shortened(f"{sign} {line.name}: {line.before}{comment}", _LONGEST_LINE)
    if line.after:
        yield shortened(f"+ {line.name}: {line.after}{line.comment}", _LONGEST_LINE)


def _fence(lines: list[str]) -> str:
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    return "`" * max(3, longest + 1)


def _notes(document: Document) -> Iterator[str]:
    yield from (f"- {_inline(note)}" for note in document.notes)
    if document.unmanaged:
        yield f"- {document.unmanaged}"


def _inline(text: str) -> str:
    """Return text in which nothing is read as markup, HTML, a link, a mention or a table cell."""
    return _SPECIAL.sub(_entity, printable(text))


def _entity(match: re.Match[str]) -> str:
    # Forges look for mentions and issues after they decode entities. A zero-width space breaks
    # both.
    broken = "&#8203;" if match[0] in "@#" else ""
    return f"&#{ord(match[0])};{broken}"


FORMAT = Format("markdown", plan=lambda plan, _: plan_as_markdown(plan))
