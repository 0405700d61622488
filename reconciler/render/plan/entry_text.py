"""One entry of a plan for a terminal: a line of identity, fields, consequences, notes."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.action import Action
from reconciler.model.change import Change, Reason, Severity
from reconciler.model.text import printable, shortened
from reconciler.render.diagnostics import place_as_text
from reconciler.render.options import RenderOptions
from reconciler.render.plan.entries import Entry
from reconciler.render.plan.fields import FieldLine, LineKind
from reconciler.render.plan.remarks import Remark
from reconciler.render.plan.words import SEVERITIES, SIGNS, title
from reconciler.render.style import NARROWEST, Colour, Style, padded, width_of

_LINE_COLOURS = {"-": Colour.RED, "+": Colour.GREEN, " ": Colour.DIM}
_SIGNED = {LineKind.ADDED: ("+", Colour.GREEN), LineKind.REMOVED: ("-", Colour.RED)}
_LONGEST_TITLE = 200
_LONGEST_VALUE = 2_000
_WIDEST = 100
"""Cells after which a place at the right is no longer beside its title."""
_LONGEST_NAME = 36
_INDENT = 6
_REASONS = {Reason.STATE_ABSENT: "state: absent", Reason.PRUNED: "unmanaged, pruned"}


def entry_lines(
    entry: Entry, options: RenderOptions, *, dangers_only: bool = False
) -> Iterator[str]:
    """Yield the lines of an entry. `dangers_only` yields none of an entry without a danger."""
    style = options.style
    remarks = entry.remarks
    if dangers_only:
        remarks = tuple(remark for remark in remarks if remark.severity is Severity.DANGER)
        if not remarks:
            return
    yield from _head(entry, style, alone=dangers_only)
    if not dangers_only:
        yield from _members(entry, options)
        for reason in entry.reasons:
            yield from wrapped(reason, " " * _INDENT, style, Colour.DIM)
        if not _beside(entry, style):
            yield from _fields(entry.lines, style)
    for remark in remarks:
        yield from _remark(remark, entry, style)
    for note in () if dangers_only else entry.notes:
        yield from wrapped(note, "      note: ", style, Colour.DIM)


def wrapped(
    text: str, prefix: str, style: Style, colour: Colour | None = None, *, indent: int | None = None
) -> Iterator[str]:
    """Yield text in lines after a prefix, escaped, cut if it is very long."""
    hanging = " " * (min(len(prefix), 8) if indent is None else indent)
    lines = style.wrapped(shortened(printable(text), _LONGEST_VALUE), prefix, hanging)
    for line in lines or ([prefix.rstrip()] if prefix.strip() and not text else []):
        yield style.paint(colour, line)


def _head(entry: Entry, style: Style, *, alone: bool) -> Iterator[str]:
    if entry.change.action is Action.DELETE:
        for change in entry.changes:
            yield from _identity(change, title(change), _place(change), style)
        return
    name = entry.title
    if (beside := _beside(entry, style)) and not alone:
        name += f"   {beside}"
    place = "" if entry.grouped else _place(entry.change)
    yield from _identity(entry.change, name, place, style)


def _identity(change: Change, name: str, place: str, style: Style) -> Iterator[str]:
    """Yield the sign and the name, and the place at the right, or below if it does not fit."""
    label = SIGNS[change.action]
    name = shortened(name, _LONGEST_TITLE)
    width = max(NARROWEST, min(style.width, _WIDEST))
    space = width - 4 - width_of(name) - width_of(place)
    sign = f"{label.text:>3}"
    lines = style.wrapped(name, " " * 4, " " * _INDENT) or [""]
    right = f"{' ' * space}{style.paint(Colour.DIM, place)}" if place and space >= 2 else ""
    first = style.paint(Colour.BOLD, lines[0].removeprefix("    "))
    yield f"{style.paint(label.colour, sign)} {first}{right}"
    yield from (style.paint(Colour.BOLD, line) for line in lines[1:])
    if place and not right:
        yield from wrapped(place, " " * _INDENT, style, Colour.DIM)


def _place(change: Change) -> str:
    """Return where a change comes from: the file and line, or why an object is deleted."""
    place = place_as_text(change.at) if change.at is not None else ""
    if change.action is not Action.DELETE:
        return place
    if Reason.REMOVED_FROM_FILES in change.reasons:
        return "removed from the configuration"
    why = [text for reason, text in _REASONS.items() if reason in change.reasons]
    return ", ".join([*why, *([place] if place else [])])


def _beside(entry: Entry, style: Style) -> str:
    """Return the only field of a group if it fits beside the title, else ""."""
    if not entry.grouped or len(entry.lines) != 1:
        return ""
    (line,) = entry.lines
    text = f"{line.name}  {line.before} -> {line.after}"
    fits = _INDENT + width_of(entry.title) + width_of(text) < min(style.width, _WIDEST)
    plain = line.kind is LineKind.CHANGED and not line.hunk and not line.comment
    return text if plain and fits else ""


def _members(entry: Entry, options: RenderOptions) -> Iterator[str]:
    if not entry.grouped or entry.change.action is Action.DELETE:
        return
    if not options.verbose:
        yield from wrapped(entry.members, " " * _INDENT, options.style, indent=_INDENT)
        return
    for change in entry.changes:
        text = f"{title(change)}  {_place(change)}".rstrip()
        yield from wrapped(text, " " * _INDENT, options.style)


def _fields(lines: tuple[FieldLine, ...], style: Style) -> Iterator[str]:
    names = [width_of(line.name) for line in lines if not line.hunk]
    size = max((name for name in names if name <= _LONGEST_NAME), default=0)
    for line in lines:
        yield from _field(line, size, style)


def _field(line: FieldLine, size: int, style: Style) -> Iterator[str]:
    name = padded(line.name, size)
    comment = f"  # {line.comment}" if line.comment else ""
    if line.hunk:
        yield f"      {line.name}{comment}"
        for part in line.hunk:
            yield from wrapped(part[2:], f"        {part[:2]}", style, _LINE_COLOURS[part[0]])
    elif line.kind is not LineKind.CHANGED:
        sign, colour = _SIGNED.get(line.kind, (" ", None))
        value = f"{line.before or line.after}{comment}"
        hanging = min(_INDENT + size + 2, style.width // 2)
        yield from wrapped(value, f"    {sign} {name}  ", style, colour, indent=hanging)
    elif width_of(both := f"      {name}  {line.before} -> {line.after}{comment}") <= style.width:
        yield both
    else:
        yield f"      {line.name}{comment}"
        yield from wrapped(line.before, "        - ", style, Colour.RED)
        yield from wrapped(line.after, "        + ", style, Colour.GREEN)


def _remark(remark: Remark, entry: Entry, style: Style) -> Iterator[str]:
    label = SEVERITIES[remark.severity]
    text = f"{remark.rule}  {remark.full}"
    if remark.of_all and entry.grouped and entry.change.action is Action.DELETE:
        # The objects are listed above.
        text = f"{remark.rule}  {remark.message} (all {len(entry.changes):,})"
    yield from wrapped(text, f"      {label.text} ", style, label.colour, indent=8)
