"""A plan as a comment of a pull request, the worst changes first.

A comment may have 65,536 characters. Parts are added in order of importance while they fit, and
what does not fit is counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence

from reconciler.model.change import Consequence, Severity
from reconciler.model.plan import Plan, Refusal
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
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\."
    r"|!(?=\d)|%(?=[\w\"'])|(?<=\bGH)-(?=\d)|(?<=\b[0-9a-f]{39})[0-9a-f]\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[@#-]|[!$&](?=\d)|[%~](?=[\w\"'])")
"""The sign of a mention, or of a link to an issue, a merge request, a milestone or a label."""


def plan_as_markdown(plan: Plan) -> str:
    """Return the summary, violations, a table, then a block for every change."""
    document = document_of(plan)
    environment = _inline(shortened(f"Environment {document.environment}", _LONGEST_LINE))
    parts = [f"### {_inline(document.summary)}\n", f"{environment}\n"]
    if document.no_changes:
        parts.append(f"{document.no_changes}\n")
    space = LIMIT - _MARGIN - sum(len(part) + 1 for part in parts)
    for pieces, share, rest in _sections(document):
        kept, missing = _within(pieces, space // share)
        space -= sum(len(piece) + 1 for piece in kept)
        kept += [rest(missing)] if missing else []
        text = "\n".join(kept).rstrip("\n")
        parts += [f"{text}\n"] if text else []
    return "\n".join(parts)


def _sections(document: Document) -> Iterator[tuple[Iterator[str], int, Callable[[int], str]]]:
    """Yield the pieces of each section, its share of the space left, and how to count the rest."""
    entries = document.worst_first
    hint = "The plan file has all changes."
    yield _violations(document), 3, lambda n: f"> - … and {n} more"
    yield _table(entries), 2, lambda n: f"\n… and {several(n, 'more change')} not in this table"
    yield map(_details, entries), 1, lambda n: f"\n{several(n, 'change')} not shown. {hint}"
    yield _notes(document), 1, lambda _: ""


def _within(pieces: Iterator[str], space: int) -> tuple[list[str], int]:
    """Return the pieces that fit, and how many are missing."""
    kept: list[str] = []
    for piece in pieces:
        space -= len(piece) + 1
        if space < 0:
            return kept, 1 + sum(1 for _ in pieces)
        kept.append(piece)
    return kept, 0


def _table(entries: tuple[Entry, ...]) -> Iterator[str]:
    if entries:
        yield "| | action | resource | why |\n|---|---|---|---|"
    for entry in entries:
        action, severity = entry.change.action, entry.change.severity
        icon = _ICONS[severity] if severity is not None else ""
        title, why = _inline(shortened(entry.title)), _inline(entry.reason)
        yield f"| {icon} | {SIGNS[action].text} {action.value} | {title} | {why} |"


def _violations(document: Document) -> Iterator[str]:
    refused = [violation for violation in document.violations if not violation.after_merge]
    later = [violation for violation in document.violations if violation.after_merge]
    if refused:
        yield "> [!CAUTION]\n> **Refused by policy. Nothing will be applied.**"
        yield from _listed(refused)
    if later:
        yield "\n" * bool(refused) + "> [!WARNING]\n> **Danger: takes effect after the merge.**"
        yield from _listed(later)


def _listed(violations: Sequence[Refusal]) -> Iterator[str]:
    for violation in violations:
        place = f" ({violation.at})" if violation.at is not None else ""
        message = f"{place}: {shortened(violation.message, _LONGEST_LINE)}"
        hint = _inline(shortened(violation.allow or "", _LONGEST_LINE))
        allow = f"\n>   hint: {hint}" if hint else ""
        yield f"> - `{violation.rule}`{_inline(message)}{allow}"


def _details(entry: Entry) -> str:
    action, consequences = entry.change.action, entry.change.consequences
    diff = (shortened(line, _LONGEST_LINE) for field in entry.lines for line in _diff(field))
    # A limit of its own, so that a huge change does not displace all others.
    lines, missing = _within(diff, _LONGEST_BLOCK)
    lines += [f"  … {missing} more lines in the plan file"] if missing else []
    fence, title = _fence(lines), html.escape(shortened(entry.title)).replace("#", "&#35;")
    block = [
        "<details>",
        f"<summary>{SIGNS[action].text} {action.value} <code>{title}</code></summary>",
        "",
        *(_consequence(consequence) for consequence in consequences),
        *([""] if consequences else []),
        *([f"{fence}diff", *lines, fence] if lines else []),
        "</details>",
        "",
    ]
    return "\n".join(block)


def _consequence(consequence: Consequence) -> str:
    severity = consequence.severity
    word = f"{_ICONS[severity]} **{SEVERITIES[severity].text}** `{consequence.rule}`"
    return f"- {word}: {_inline(shortened(consequence.message, _LONGEST_LINE))}"


def _diff(line: FieldLine) -> Iterator[str]:
    if line.hunk:
        yield f"  {line.name}:{line.comment}"
        yield from (f"{part[:2]}  {part[2:]}" for part in line.hunk)
        return
    if line.before:
        sign = " " if line.kind is LineKind.KEPT else "-"
        comment = "" if line.after else line.comment
        yield f"{sign} {line.name}: {line.before}{comment}"
    if line.after:
        yield f"+ {line.name}: {line.after}{line.comment}"


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
    # Forges look for mentions, issues and commits after they decode entities. A zero-width space
    # breaks them: after a sign, and before the last digit of a commit.
    if match[0].isalnum():
        return f"&#8203;{match[0]}"
    broken = "&#8203;" if _REFERENCE.match(match.string, match.start()) else ""
    return f"&#{ord(match[0])};{broken}"


FORMAT = Format("markdown", plan=lambda plan, _: plan_as_markdown(plan))
