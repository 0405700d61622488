"""A plan for a terminal. An entry is a line of identity, fields, consequences and notes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan, Reason, Severity
from reconciler.model.text import cut_inside, listed, printable, several, shortened
from reconciler.render.diagnostics import place_as_text
from reconciler.render.options import (
    DEFAULTS,
    NARROWEST,
    Colour,
    RenderOptions,
    Style,
    padded,
    width_of,
)
from reconciler.render.plan_document import (
    TOP,
    Document,
    Part,
    Section,
    brief,
    document_of,
    top_of,
)
from reconciler.render.plan_entries import (
    SEVERITIES,
    SIGNS,
    Entry,
    Remark,
    counted,
    resources,
    title,
)
from reconciler.render.plan_fields import FieldLine, LineKind

_LINE_COLOURS = {"-": Colour.RED, "+": Colour.GREEN, " ": Colour.DIM}
_SIGNED = {LineKind.ADDED: ("+", Colour.GREEN), LineKind.REMOVED: ("-", Colour.RED)}
_LONGEST_TITLE = 200
_LONGEST_VALUE = 2_000
_WIDEST = 100
"""Cells after which a place at the right is no longer beside its title."""
_LONGEST_NAME = 36
_INDENT = 6
_REASONS = {Reason.STATE_ABSENT: "state: absent"}
_MOST_RULES = 6
_MOST_NAMED = 6
_MOST_LINES = 150
"""Lines of a plan that is not verbose, unless what is not an entry leaves less than the fewest."""
_FEWEST_LINES = 60
_SHORT_LINES, _REST_LINES = 40, 9
"""Lines for entries of one line if not all fit, and in these for the counts of the others."""
_MOST_FIELD_LINES = 40
_LEVELS = {Part.LATER: "danger, takes effect after the merge", Part.REFUSED: "error"}
_DRIFT = (
    "Drift (live state changed since the apply). This plan sets it back; `drift --write` keeps it."
)


def plan_as_text(
    plan: Plan, options: RenderOptions = DEFAULTS, *, with_dangers: bool = True
) -> str:
    """Return the plan, ending with the summary. `with_dangers` unless they are shown above."""
    document = document_of(plan, verbose=options.verbose, brief=options.summary)
    head = [*filter(None, map(list, _head(document, options.style, with_dangers=with_dangers)))]
    end = [*filter(None, map(list, _after_entries(document, options)))]
    space = _MOST_LINES - sum(len(block) + 1 for block in (*head, *end))
    above = with_dangers and not document.section(Part.DANGERS).is_brief
    entries = _entries(document, options, max(space, _FEWEST_LINES), are_dangers_above=above)
    texts = [*map("\n".join, (*head, *entries, *end))]
    # Nothing to read between the header and the result.
    return ("\n" if len(texts) == 2 and plan.empty else "\n\n").join(texts) + "\n"


def plans_as_text(plans: Sequence[OfEnvironment[Plan]], options: RenderOptions = DEFAULTS) -> str:
    """Return dangers and what is new of all, a part for each environment, then a line for each."""
    blocks = top_blocks(top_of(plans), options.style)
    parts = ["".join(f"{line}\n" for line in block) for block in blocks]
    parts += [_of_environment(item, options) for item in plans]
    names = max(len(printable(item.environment)) for item in plans)
    lines = [f"{several(len(plans), 'environment')}:"]
    lines += [f"  {printable(item.environment):{names}}  {counts_of(item)}" for item in plans]
    return "\n".join([*parts, "\n".join(lines) + "\n"])


def counts_of(item: OfEnvironment[Plan]) -> str:
    """Return `2 to create, 1 to delete`, `no changes`, or that there is an error."""
    if item.result is None:
        return "error"
    counts = ", ".join(counted(item.result).values()) or "no changes"
    return f"{counts}; refused by policy" if item.result.is_refused else counts


def _of_environment(item: OfEnvironment[Plan], options: RenderOptions) -> str:
    if item.result is not None:
        return plan_as_text(item.result, replace(options, cost=item.cost), with_dangers=False)
    name = options.style.paint(Colour.DIM, "Environment ") + printable(item.environment)
    number = several(len(item.problems), "error") if len(item.problems) > 1 else "error"
    first = printable(next(iter(item.problems), ""))
    return f"{name}\n{options.style.paint(Colour.BOLD_RED, number)}: {first}\n"


def unverified_as_text(left: Plan | None, *, passed: bool) -> str:
    """Return the error or the note for a second plan that is not empty, "" without one."""
    if left is None or left.empty:
        return ""
    if passed:
        others = several(len(left.effective), "other change")
        return f"note: the plan after apply has {others}, not made by this run\n"
    return f"error: the plan after apply is not empty:\n{plan_as_text(left)}"


def _head(document: Document, style: Style, *, with_dangers: bool) -> Iterator[Iterable[str]]:
    yield _header(document, style)
    if with_dangers:
        yield from top_blocks(map(document.section, TOP), style)


def _entries(
    document: Document, options: RenderOptions, space: int, *, are_dangers_above: bool
) -> Iterator[list[str]]:
    """Yield the entries: whole in the first lines of the space, then a line each, then counted."""
    style, entries, above = options.style, document.entries, are_dangers_above
    blocks = [[*entry_lines(entry, options, are_dangers_above=above)] for entry in entries]
    ends = [*accumulate(len(block) + 1 for block in blocks)]
    whole = listed_to = len(entries)
    if ends and ends[-1] > space and not options.verbose:
        whole = bisect_right(ends, space - _SHORT_LINES)
        listed_to = whole + space - _REST_LINES - (ends[whole - 1] if whole else 0)
    places = {id(entry): place for place, entry in enumerate(entries)}
    for section in document.sections:
        order = sorted(places[id(entry)] for entry in section.entries)
        if section.part is Part.DRIFT and order[0] < listed_to:
            yield [*wrapped(_DRIFT, "", style, Colour.BOLD)]
        yield from (blocks[place] for place in order if place < whole)
        if short := [entries[place] for place in order if whole <= place < listed_to]:
            yield [_in_one_line(entry, style) for entry in short]
    if rest := [change for entry in entries[listed_to:] for change in entry.changes]:
        yield [*_counted(rest, style)]


def _in_one_line(entry: Entry, style: Style) -> str:
    """Return the sign, the address or the number, and what changes: dangers, then fields."""
    label, width = SIGNS[entry.change.action], max(NARROWEST, style.width) - 4
    name = entry.title if entry.grouped else str(entry.change.address)
    what = [f"!! {item.message}" for item in entry.remarks if item.severity is Severity.DANGER]
    what += [
        line.name if line.hunk or not line.before else f"{line.name}  {line.before} -> {line.after}"
        for line in entry.lines
    ]
    text = "; ".join(filter(None, [*what, entry.members]))
    text = f"{cut_inside(name, width // 2)}  {brief(text, _LONGEST_VALUE)}"
    return f"{style.paint(label.colour, f'{label.text:>3}')} {shortened(text, width).rstrip()}"


def _counted(changes: Sequence[Change], style: Style) -> Iterator[str]:
    """Yield a line for each action of changes, with the first names."""
    dangers = sum(item.severity is Severity.DANGER for item in changes)
    with_dangers = f", {dangers:,} with dangers" if dangers else ""
    yield f"… and {several(len(changes), 'more change')}{with_dangers} (list: --verbose)"
    for action in Action:
        if names := [printable(item.address.key) for item in changes if item.action is action]:
            text = f"{len(names):,} to {action.value}: {listed(names, _MOST_NAMED)}"
            sign = style.paint(SIGNS[action].colour, f"{SIGNS[action].text:>3}")
            yield f"{sign} {shortened(text, max(NARROWEST, style.width) - 4)}"


def _after_entries(document: Document, options: RenderOptions) -> Iterator[Iterable[str]]:
    style, notes = options.style, document.section(Part.NOTES).items
    if not options.summary:
        yield (line for item in notes for line in wrapped(item.text, "note: ", style, Colour.DIM))
        if document.unmanaged and options.show_unmanaged:
            yield (f"{document.unmanaged_count}:", *(f"    {line}" for line in document.unmanaged))
    elif notes:
        yield (f"{several(len(notes), 'note')}: omit --summary to read",)
    yield _violations(document, style)
    yield _end(document, options)


def _header(document: Document, style: Style) -> Iterator[str]:
    yield from wrapped(document.environment, "Environment ", style, Colour.DIM, indent=12)
    plan = document.plan
    applied = document.applied if plan.empty else f"{document.applied} · {document.id}"
    yield from wrapped(applied, "Applied     ", style, Colour.DIM, indent=12)
    if plan.source.uncommitted:
        head = document.versions.removeprefix(document.applied).strip()
        yield from wrapped(head, " " * 12, style, Colour.DIM, indent=12)


def top_blocks(sections: Iterable[Section], style: Style) -> Iterator[Iterable[str]]:
    """Yield dangers, what is loosened and what is new, each as lines."""
    writers = {Part.DANGERS: _danger_lines, Part.LOOSENED: _loosened, Part.NEW: _new}
    return (writers[section.part](section, style) for section in sections)


def _danger_lines(section: Section, style: Style) -> Iterator[str]:
    """Yield the dangers, each in one line if they are many: the entries have the whole texts."""
    if section.items:
        yield style.paint(Colour.BOLD_RED, section.heading)
    for item in section.within_budget():
        text = ": ".join(filter(None, (item.subject, item.text)))
        if section.is_brief:
            text = section.in_one_line(item, style.width - 5)
        lines = [*wrapped(text, "  !! " if item.subject else "     ", style, indent=5)]
        if item.at is not None and not section.is_brief:
            lines += wrapped(place_as_text(item.at), " " * 5, style)
        yield from (style.paint(Colour.RED, line) for line in lines)


def _loosened(section: Section, style: Style) -> Iterator[str]:
    for item in section.items:
        yield from wrapped(item.text, "loosened: ", style, Colour.YELLOW)


def _new(section: Section, style: Style) -> Iterator[str]:
    """Yield what is new: texts, and in a second column who reaches it, if both fit."""
    items = section.within_budget()
    if section.is_brief:
        most = style.width * 2 // 3
        items = tuple(replace(item, subject=brief(item.short, most)) for item in items)
    if items:
        yield style.paint(Colour.BOLD, Part.NEW)
    widths = [width_of(item.subject) for item in items]
    size = max((width for width in widths if width <= style.width // 2), default=0)
    for item in items:
        if not item.subject:
            yield from wrapped(item.text, "     ", style, Colour.DIM)
            continue
        label, text = SEVERITIES[item.severity], f"{padded(item.subject, size)}  {item.text}"
        if section.is_brief:
            text = shortened(text, style.width - 5)
        yield from wrapped(text, f"{label.text:>4} ", style, label.colour, indent=7)


def entry_lines(entry: Entry, options: RenderOptions, *, are_dangers_above: bool) -> Iterator[str]:
    """Yield the lines of an entry, of dangers only the rules if their texts are above."""
    style = options.style
    yield from _titles(entry, style, verbose=options.verbose)
    yield from _members(entry, options)
    for reason in entry.reasons:
        yield from wrapped(reason, " " * _INDENT, style, Colour.DIM)
    if not _beside(entry, style):
        names = [width_of(line.name) for line in entry.lines if not line.hunk]
        size = max((name for name in names if name <= _LONGEST_NAME), default=0)
        fields = [text for line in entry.lines for text in _field(line, size, style)]
        most = len(fields) if options.verbose else _MOST_FIELD_LINES
        yield from fields[:most]
        if len(fields) > most:
            yield f"      … {several(len(fields) - most, 'more line')} (list: --verbose)"
    remarks = (
        Remark(item.rule, item.severity, "")
        if are_dangers_above and item.severity is Severity.DANGER
        else item
        for item in entry.remarks
    )
    for remark in dict.fromkeys(remarks):
        yield from _remark(remark, entry, style)
    for note in entry.notes:
        yield from wrapped(note, "      note: ", style, Colour.DIM)


def _titles(entry: Entry, style: Style, *, verbose: bool) -> Iterator[str]:
    if entry.has_lines(verbose=verbose):
        for change in entry.changes:
            yield from _identity(change, entry.title_of(change), _place(change), style)
            for item in entry.inside.get(change.id, ()) if verbose else ():
                yield from wrapped(title(item), " " * _INDENT, style)
        return
    name = entry.title
    if beside := _beside(entry, style):
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
    if not entry.grouped or entry.has_lines(verbose=options.verbose):
        return
    if not options.verbose:
        yield from wrapped(entry.members, " " * _INDENT, options.style, indent=_INDENT)
        return
    for change in entry.changes:
        text = f"{title(change)}  {_place(change)}".rstrip()
        yield from wrapped(text, " " * _INDENT, options.style)


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
    text = f"{remark.rule}  {remark.full}".rstrip()
    if remark.message and remark.of_all and entry.grouped and entry.change.action is Action.DELETE:
        # The objects are listed above.
        text = f"{remark.rule}  {remark.message} (all {len(entry.changes):,})"
    yield from wrapped(text, f"      {label.text} ", style, label.colour, indent=8)


def _violations(document: Document, style: Style) -> Iterator[str]:
    for part, level in _LEVELS.items():
        for item in document.section(part).items:
            place = f"{item.at}: " if item.at is not None else ""
            headline = f"{place}{level}: {item.text} [{item.code}]"
            yield from wrapped(headline, "", style, Colour.BOLD_RED, indent=4)
            if item.hint is not None:
                yield from wrapped(item.hint, "  hint: ", style)
            if item.names:
                yield from wrapped(item.names, "  resources: ", style, indent=4)


def _end(document: Document, options: RenderOptions) -> Iterator[str]:
    leaving = len(document.plan.leaving)
    style, hint = options.style, f"; {leaving:,} not managed any more" if leaving else ""
    if document.unmanaged:
        hint += f"; {len(document.unmanaged):,} unmanaged"
        hint += "" if options.show_unmanaged else ", list with --show-unmanaged"
    refused = document.section(Part.REFUSED).items
    if document.plan.empty:
        unclear = len(document.plan.unclear)
        rest = "" if refused else ". Live state matches the configuration"
        rest = f", {unclear} not compared" if unclear else rest
        text = f"No changes{rest} ({resources(document.plan)}{hint})."
        yield from wrapped(text, "", style, Colour.BOLD)
    else:
        summary = f"{document.summary.removesuffix(').')}{hint})."
        yield from wrapped(summary, "", style, Colour.BOLD, indent=6)
    dangers = document.section(Part.DANGERS)
    if dangers.items:
        text = f"{dangers.heading}: {document.plan.named_dangers}"
        yield from wrapped(text, "      ", style, Colour.BOLD_RED, indent=8)
    if refused:
        rules = dict.fromkeys(item.code for item in refused)
        text = f"Refused by {several(len(rules), 'rule')}: {listed(rules, _MOST_RULES)}. "
        text += "Nothing will be applied."
        yield from wrapped(text, "      ", style, Colour.BOLD_RED, indent=8)
    if options.cost:
        yield from wrapped(f"{printable(options.cost)}.", "      ", style, Colour.DIM, indent=6)


def wrapped(
    text: str, prefix: str, style: Style, colour: Colour | None = None, *, indent: int | None = None
) -> Iterator[str]:
    """Yield text in lines after a prefix, escaped, cut if it is very long."""
    hanging = " " * (min(len(prefix), 8) if indent is None else indent)
    lines = style.wrapped(cut_inside(printable(text), _LONGEST_VALUE), prefix, hanging)
    for line in lines or ([prefix.rstrip()] if prefix.strip() and not text else []):
        yield style.paint(colour, line)
