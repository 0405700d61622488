"""A plan for a terminal, field by field."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from reconciler.model.change import Action, Danger
from reconciler.model.plan import Plan
from reconciler.model.wording import printable
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.document import Document, Entry, document_of
from reconciler.render.plan.fields import FieldLine, LineKind
from reconciler.render.plan.words import SEVERITIES, SIGNS, shortened
from reconciler.render.style import Colour, Style

_COLOURS = {
    Action.CREATE: Colour.GREEN,
    Action.UPDATE: Colour.YELLOW,
    Action.REPLACE: Colour.MAGENTA,
    Action.PAUSE: Colour.CYAN,
    Action.UNPAUSE: Colour.CYAN,
    Action.DELETE: Colour.RED,
    Action.NO_OP: Colour.DIM,
}
_SEVERITY_COLOURS = {
    Danger.DANGER: Colour.BOLD_RED,
    Danger.WARNING: Colour.YELLOW,
    Danger.INFO: Colour.DIM,
}
_LINE_COLOURS = {"-": Colour.RED, "+": Colour.GREEN, " ": Colour.DIM}
_LONGEST_TITLE = 200
_LONGEST_VALUE = 2_000
_NARROWEST = 40
_MOST_ADDRESSES = 5


def plan_as_text(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return the whole plan, ending with the summary line."""
    document, style = document_of(plan), options.style
    blocks = [_heading(document, style)]
    blocks += ["\n".join(_entry(entry, style)) for entry in document.entries]
    remarks = (
        _notes(document, style),
        _unmanaged(document, options),
        _violations(document, style),
    )
    blocks += ["\n".join(lines) for block in remarks if (lines := list(block))]
    if document.no_changes:
        blocks.append(document.no_changes)
    blocks.append(style.paint(Colour.BOLD, document.summary))
    return "\n\n".join(blocks) + "\n"


def _heading(document: Document, style: Style) -> str:
    base = f"\nCompared with git base {document.base}" if document.base else ""
    return style.paint(Colour.DIM, f"Environment {document.environment}{base}")


def _entry(entry: Entry, style: Style) -> Iterator[str]:
    action = entry.change.action
    sign = style.paint(_COLOURS[action], SIGNS[action])
    name = style.paint(Colour.BOLD, shortened(entry.title, _LONGEST_TITLE))
    yield f"{sign} {action.value} {name}"
    yield from _wrapped(entry.reason, "    ", style, Colour.DIM)
    for line in entry.brief:
        yield from _field(line, style)
    for consequence in entry.change.consequences:
        label = f"{SEVERITIES[consequence.severity]} [{consequence.rule}]: "
        colour = _SEVERITY_COLOURS[consequence.severity]
        yield from _wrapped(label + consequence.message, "    ! ", style, colour)


def _field(line: FieldLine, style: Style) -> Iterator[str]:
    remark = f"  ({line.remark})" if line.remark else ""
    name = f"    {line.name}: "
    if line.hunk:
        yield f"{name.rstrip()}{remark}"
        for part in line.hunk:
            yield from _wrapped(part[2:], f"      {part[:2]}", style, _LINE_COLOURS[part[0]])
        return
    match line.kind:
        case LineKind.ADDED:
            prefix = f"  + {line.name}: "
            yield from _wrapped(f"{line.after}{remark}", prefix, style, Colour.GREEN)
        case LineKind.REMOVED:
            prefix = f"  - {line.name}: "
            yield from _wrapped(f"{line.before}{remark}", prefix, style, Colour.RED)
        case LineKind.CHANGED:
            yield from _changed(line, name, remark, style)
        case _:
            yield from _wrapped(f"{line.before or line.after}{remark}", name, style)


def _changed(line: FieldLine, name: str, remark: str, style: Style) -> Iterator[str]:
    both = f"{name}{line.before} → {line.after}{remark}"
    if len(both) <= style.width:
        yield both
        return
    # Too long for one line: one side below the other.
    yield f"{name.rstrip()}{remark}"
    yield from _wrapped(line.before, "      - ", style, Colour.RED)
    yield from _wrapped(line.after, "      + ", style, Colour.GREEN)


def _wrapped(text: str, prefix: str, style: Style, colour: Colour | None = None) -> Iterator[str]:
    lines = textwrap.wrap(
        shortened(printable(text), _LONGEST_VALUE),
        width=max(_NARROWEST, style.width),
        initial_indent=prefix,
        subsequent_indent=" " * min(len(prefix), 8),
        # References and commands stay whole, to be copied: a terminal wraps what is too long.
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    for line in lines or ([prefix.rstrip()] if prefix.strip() and not text else []):
        yield style.paint(colour, line)


def _notes(document: Document, style: Style) -> Iterator[str]:
    for note in document.notes:
        yield from _wrapped(note, "Note: ", style, Colour.DIM)


def _unmanaged(document: Document, options: RenderOptions) -> Iterator[str]:
    if not document.unmanaged:
        return
    if not options.show_unmanaged:
        sentence = f"{document.unmanaged} (--show-unmanaged lists them)."
        yield from _wrapped(sentence, "", options.style, Colour.DIM)
        return
    yield f"{document.unmanaged}:"
    yield from (f"    {line}" for line in document.unmanaged_objects)


def _violations(document: Document, style: Style) -> Iterator[str]:
    for violation in document.violations:
        headline = f"[{violation.rule}] {violation.message}"
        yield from _wrapped(headline, "Refused: ", style, Colour.BOLD_RED)
        if violation.at is not None:
            yield from _wrapped(f"the rule stands at {violation.at}", "    ", style)
        named = ", ".join(str(address) for address in violation.addresses[:_MOST_ADDRESSES])
        rest = len(violation.addresses) - _MOST_ADDRESSES
        if named:
            yield from _wrapped(f"{named} and {rest} more" if rest > 0 else named, "    ", style)
        if violation.allow is not None:
            yield from _wrapped(f"to allow it: {violation.allow}", "    ", style)
