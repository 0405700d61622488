"""A plan for a terminal, field by field."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.plan import Plan
from reconciler.model.wording import listed, printable
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.document import Document, Entry, document_of
from reconciler.render.plan.fields import FieldLine, LineKind
from reconciler.render.plan.words import SEVERITIES, SIGNS, shortened
from reconciler.render.style import Colour, Style

_LINE_COLOURS = {"-": Colour.RED, "+": Colour.GREEN, " ": Colour.DIM}
_SIGNED = {LineKind.ADDED: ("+", Colour.GREEN), LineKind.REMOVED: ("-", Colour.RED)}
_LONGEST_TITLE = 200
_LONGEST_VALUE = 2_000
_MOST_ADDRESSES = 5
_REFUSED = "Refused by policy: "
_AFTER_MERGE = "Danger, takes effect after the merge: "


def plan_as_text(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return the plan, ending with the summary line."""
    document, style = document_of(plan), options.style
    base = f"\nbase: {document.base}" if document.base else ""
    blocks = [
        [style.paint(Colour.DIM, f"Environment {document.environment}{base}")],
        *(_entry(entry, style) for entry in document.entries),
        (line for note in document.notes for line in _wrapped(note, "note: ", style, Colour.DIM)),
        _unmanaged(document, options),
        _violations(document, style),
        [document.no_changes],
        [style.paint(Colour.BOLD, document.summary)],
    ]
    return "\n\n".join(filter(None, map("\n".join, blocks))) + "\n"


def unverified_as_text(left: Plan | None) -> str:
    """Return the error for a second plan that is not empty; `left` is None if there is none."""
    if left is None or left.empty:
        return ""
    return f"error: the plan after apply is not empty:\n{plan_as_text(left)}"


def _entry(entry: Entry, style: Style) -> Iterator[str]:
    action = entry.change.action
    sign = style.paint(SIGNS[action].colour, SIGNS[action].text)
    name = style.paint(Colour.BOLD, shortened(entry.title, _LONGEST_TITLE))
    yield f"{sign} {action.value} {name}"
    yield from _wrapped(entry.reason, "    ", style, Colour.DIM)
    for line in entry.brief:
        yield from _field(line, style)
    for consequence in entry.change.consequences:
        label = SEVERITIES[consequence.severity]
        text = f"{label.text} [{consequence.rule}]: {consequence.message}"
        yield from _wrapped(text, "    ! ", style, label.colour)


def _field(line: FieldLine, style: Style) -> Iterator[str]:
    name = f"    {line.name}:"
    if line.hunk:
        yield f"{name}{line.comment}"
        for part in line.hunk:
            yield from _wrapped(part[2:], f"      {part[:2]}", style, _LINE_COLOURS[part[0]])
    elif line.kind is not LineKind.CHANGED:
        sign, colour = _SIGNED.get(line.kind, (" ", None))
        value = f"{line.before or line.after}{line.comment}"
        yield from _wrapped(value, f"  {sign} {line.name}: ", style, colour)
    elif len(both := f"{name} {line.before} -> {line.after}{line.comment}") <= style.width:
        yield both
    else:
        yield f"{name}{line.comment}"
        yield from _wrapped(line.before, "      - ", style, Colour.RED)
        yield from _wrapped(line.after, "      + ", style, Colour.GREEN)


def _wrapped(text: str, prefix: str, style: Style, colour: Colour | None = None) -> Iterator[str]:
    indent = " " * min(len(prefix), 8)
    lines = style.wrapped(shortened(printable(text), _LONGEST_VALUE), prefix, indent)
    for line in lines or ([prefix.rstrip()] if prefix.strip() and not text else []):
        yield style.paint(colour, line)


def _unmanaged(document: Document, options: RenderOptions) -> Iterator[str]:
    if document.unmanaged and options.show_unmanaged:
        yield f"{document.unmanaged}:"
        yield from (f"    {line}" for line in document.unmanaged_objects)
    elif document.unmanaged:
        count = f"{document.unmanaged} (list with --show-unmanaged)"
        yield options.style.paint(Colour.DIM, count)


def _violations(document: Document, style: Style) -> Iterator[str]:
    for violation in document.violations:
        headline = f"{violation.message} [{violation.rule}]"
        first = _AFTER_MERGE if violation.after_merge else _REFUSED
        yield from _wrapped(headline, first, style, Colour.BOLD_RED)
        if violation.at is not None:
            yield from _wrapped(f"rule: {violation.at}", "    ", style)
        yield from _wrapped(listed(violation.addresses, _MOST_ADDRESSES), "    ", style)
        if violation.allow is not None:
            yield from _wrapped(f"hint: {violation.allow}", "    ", style)
