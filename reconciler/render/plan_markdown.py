"""A plan as a comment of a pull request, the worst changes first.

A comment may have 65,536 characters. Parts are added in order of importance while they fit, and
what does not fit is counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan, Severity
from reconciler.model.text import cut_inside, listed, printable, several, shortened
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import code, inline, link, marked_up, short_markup, within
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan_document import (
    TOP,
    Document,
    Item,
    Part,
    Section,
    brief,
    document_of,
    top_of,
)
from reconciler.render.plan_entries import (
    SIGNS,
    Entry,
    Remark,
    counted,
    deleted_in,
    resources,
    title,
)
from reconciler.render.plan_fields import FieldLine, LineKind, field_lines

_MARGIN = 600
_LONGEST, _FEWEST = 20_000, 8_000
"""Characters of a comment, and those that entries have if messages above leave less."""
_LONGEST_LINE = 500
_LONGEST_ITEM = 2_000
_LONGEST_BRIEF = 84
_LONGEST_BLOCK = 8_000
_LONGEST_GROUP = 2_000
_LONGEST_NAME = 120
_LONGEST_CELL = 160
_MOST_IN_CELL = 5
_MOST_MEMBERS = 60
_MOST_NAMED = 12
_UNMARKED = re.compile(r"[^\w./ -]|--+")
_ICONS = {Severity.DANGER: "🛑", Severity.WARNING: "⚠", Severity.INFO: "ℹ"}


def plan_as_markdown(
    plan: Plan, options: RenderOptions = DEFAULTS, *, with_dangers: bool = True
) -> str:
    """Return a marker, the counts, dangers, violations, a table, then a block for every entry.

    `with_dangers` unless they are shown above.
    """
    document = document_of(plan)
    parts = [f"{_marker(document.plan.source.environment, options)}\n{_title(document)}\n"]
    space = options.limit - _MARGIN - len(parts[0])
    for section in _messages_above(document, with_dangers=with_dangers):
        kept, missing = within(_messages(section), space // 3)
        kept += [f"{_quote(section)}- … and {missing} more"] if missing else []
        parts.append(_paragraph(kept))
        space -= len(parts[-1]) + 1
    parts.append(f"{_source(document, options)}\n")
    used = sum(len(part) + 1 for part in parts)
    space = min(options.limit, max(_LONGEST, used + _FEWEST)) - _MARGIN - used
    hint = "`reconciler show --verbose FILE` prints the whole plan"
    hint += f", {link('the job', options.page)} has the file." if options.page else "."
    rows, whole, rest = _rows(document.entries, space)
    kept, missing = within(_notes(document), space // 8)
    notes = [*kept, f"- … and {several(missing, 'more note')}"] if missing else kept
    space -= sum(len(line) + 1 for line in (*rows, *rest, *notes))
    are_inside = document.section(Part.DANGERS).is_brief
    details = (_details(item, with_dangers=are_inside) for item in whole if not _is_whole(item))
    blocks, missing = within(details, space)
    left = [f"{several(missing, 'more diff')} not shown."] if missing else []
    parts += map(_paragraph, (rows, rest, blocks, left, [hint] if rest or left else [], notes))
    return "\n".join(filter(None, parts))


def _paragraph(lines: Sequence[str]) -> str:
    text = "\n".join(lines).rstrip("\n")
    return f"{text}\n" if text else ""


def plans_as_markdown(
    plans: Sequence[OfEnvironment[Plan]], options: RenderOptions = DEFAULTS
) -> str:
    """Return dangers, what is new and comments of all environments, within the limit together."""
    marker = _marker(" ".join(item.environment for item in plans), options)
    sections = top_of(plans)
    dangers = [f" · {item.heading}" for item in sections if item.part is Part.DANGERS]
    head = [marker]
    if sections:
        head.append(f"### {several(len(plans), 'environment')}{''.join(dangers)}\n")
        head += [line for section in sections for line in (*_messages(section), "")]
    used = sum(len(line) + 1 for line in head)
    for share in (options.limit - used, (options.limit - used) // len(plans)):
        parts = [_part(item, replace(options, limit=share)) for item in plans]
        text = "\n".join([*head, *parts])
        if len(text) <= options.limit:
            break
    return text


def _part(item: OfEnvironment[Plan], options: RenderOptions) -> str:
    """Return the comment of one environment, without its marker."""
    if item.result is not None:
        how = replace(options, cost=item.cost)
        return plan_as_markdown(item.result, how, with_dangers=False).partition("\n")[2]
    name = inline(shortened(item.environment, _LONGEST_NAME))
    lines = [f"> - {short_markup(line)}" for line in item.problems[:_MOST_IN_CELL]]
    more = len(item.problems) - _MOST_IN_CELL
    lines += [f"> - … and {more} more"] if more > 0 else []
    return "\n".join([f"### {name}: error", "", "> [!CAUTION]", *lines, ""])


def _marker(environment: str, options: RenderOptions) -> str:
    """Return a hidden line by which a job finds its comment: the environment and the workspace."""
    name = f"{environment} {options.root}".strip()
    return f"<!-- reconciler: {_UNMARKED.sub('_', name)[:_LONGEST_NAME]} -->"


def _title(document: Document) -> str:
    plan = document.plan
    environment = inline(shortened(plan.source.environment, _LONGEST_NAME))
    counts = ", ".join(
        f"**{text}**" if action.destructive else text for action, text in counted(plan).items()
    )
    section = document.section(Part.DANGERS)
    dangers = f" · {section.heading}" if section.items else ""
    leaving = f" · {len(plan.leaving):,} not managed any more" if plan.leaving else ""
    refused = " · refused by policy" if plan.is_refused else ""
    return f"### {environment}: {counts or 'no changes'}{dangers}{leaving}{refused}"


def _source(document: Document, options: RenderOptions) -> str:
    """Return what the plan was made from, where it applies, and what it takes."""
    source = document.plan.source
    where = document.environment.removeprefix(printable(source.environment)).lstrip(" ·")
    counts = resources(document.plan)
    parts = (document.versions, document.id, where, counts, options.cost)
    return inline(shortened(" · ".join(filter(None, parts)), _LONGEST_LINE))


def _messages_above(document: Document, *, with_dangers: bool) -> Iterator[Section]:
    left_out = {Part.NOTES} if with_dangers else {Part.NOTES, *TOP}
    return (item for item in document.sections if item.items and item.part not in left_out)


def _quote(section: Section) -> str:
    """Return what lines of an alert begin with. New places are no alert."""
    return "" if section.part is Part.NEW else "> "


def _messages(section: Section) -> Iterator[str]:
    """Yield the messages of a section, in an alert unless they are new places."""
    quote = _quote(section)
    title = f"{quote}**{section.heading}**"
    if quote:
        alert = "CAUTION" if section.severity is Severity.DANGER else "WARNING"
        title = f"> [!{alert}]\n{title}"
    yield title if quote else f"{title}\n"
    for item in section.within_budget():
        if section.is_brief:
            text = section.in_one_line(item, _LONGEST_BRIEF)
            at = f" ({inline(place_as_text(item.at))})" if item.at is not None and not quote else ""
            yield f"{quote}- {marked_up(text)}{at}"
        else:
            is_plain = section.part in (Part.NEW, Part.LOOSENED)
            yield f"{quote}- {_message(item, plain=is_plain)}"


def _message(item: Item, *, plain: bool) -> str:
    subject = code(item.subject) if item.subject else ""
    text = ": ".join(filter(None, (subject, marked_up(shortened(item.text, _LONGEST_ITEM)))))
    text += f" ({inline(place_as_text(item.at))})" if item.at is not None else ""
    text += f" `{item.code}`" if item.code and not plain else ""
    return f"{text}<br>hint: {short_markup(item.hint)}" if item.hint else text


def _rows(entries: Sequence[Entry], space: int) -> tuple[list[str], Sequence[Entry], list[str]]:
    """Return a table, the entries that it has whole, and the counts of those that it has not."""
    if not entries:
        return [], (), []
    head = "| | resource | change | consequences |\n|---|---|---|---|"
    rows, missing = within(map(_row, entries), space * 3 // 4)
    if not missing:
        return [head, *rows], entries, []
    rows, _ = within(map(_row, entries), space // 2)
    short, _ = within(map(_short_row, entries[len(rows) :]), space // 4)
    counts: dict[Action, list[Change]] = {}
    for entry in entries[len(rows) + len(short) :]:
        counts.setdefault(entry.change.action, []).extend(entry.changes)
    rest = [
        f"- {len(changes):,} more to {action.value}: {inline(_keys(changes, _MOST_NAMED))}"
        for action, changes in counts.items()
    ]
    return [head, *rows, *short], entries[: len(rows)], rest


def _keys(changes: Sequence[Change], most: int) -> str:
    return shortened(listed((change.address.key for change in changes), most), _LONGEST_GROUP)


def _row(entry: Entry) -> str:
    by_rule = {remark.rule: remark for remark in reversed(entry.remarks)}
    remarks = "<br>".join(map(_in_cell, reversed(by_rule.values())))
    return f"| {SIGNS[entry.change.action].text} | {_name(entry)} | {_changed(entry)} | {remarks} |"


def _short_row(entry: Entry) -> str:
    """Return a row with the address or the number, the fields and the dangers."""
    sign, address = SIGNS[entry.change.action].text, code(shortened(str(entry.change.address)))
    name = inline(entry.title) if entry.grouped else address
    fields = inline(shortened(", ".join(line.name for line in entry.lines), _LONGEST_CELL))
    dangers = [item for item in entry.remarks if item.severity is Severity.DANGER]
    text = brief("; ".join(item.message for item in dangers), _LONGEST_BRIEF)
    shown = f"{_ICONS[Severity.DANGER]} {marked_up(text)}" if text else ""
    return f"| {sign} | {name} | {fields} | {shown} |"


def _in_cell(remark: Remark) -> str:
    """Return the first words of a consequence, of a danger the rule: its words are above."""
    if remark.severity is Severity.DANGER:
        return f"{_ICONS[remark.severity]} `{remark.rule}`"
    text = shortened(remark.message, _LONGEST_CELL)
    if text != remark.message and " " in text:
        text = f"{text.rpartition(' ')[0]} …"
    return f"{_ICONS[remark.severity]} {marked_up(text)}"


def _name(entry: Entry) -> str:
    """Return `` `batch_export.lake` Lake (file:line) ``, or the words for a group, and its keys."""
    if entry.grouped:
        return f"{inline(entry.title)}: {inline(_keys(entry.changes, _MOST_MEMBERS))}"
    address, name = str(entry.change.address), printable(entry.change.name)
    inside = entry.title.removeprefix(title(entry.change))
    shown = "" if name == entry.change.address.key else f" {inline(shortened(name))}"
    place = inline(shortened(deleted_in(entry.change)))
    at = entry.change.at
    where = f" ({inline(place_as_text(at))})" if at is not None else ""
    return f"{code(shortened(address))}{shown}{inline(inside)}{place}{where}"


def _changed(entry: Entry) -> str:
    """Return the action, and the fields as far as they fit into a cell."""
    parts = [entry.change.action.value, *map(inline, entry.reasons)]
    if entry.drifted:
        parts.append("drift")
    for line in entry.lines[:_MOST_IN_CELL]:
        name = inline(shortened(line.name, _LONGEST_CELL))
        if line.hunk:
            parts.append(name)
        elif line.kind is LineKind.CHANGED:
            before, after = (
                code(cut_inside(side, _LONGEST_CELL)) for side in (line.before, line.after)
            )
            parts.append(f"{name} {before} → {after}")
        else:
            parts.append(f"{name} {code(cut_inside(line.after or line.before, _LONGEST_CELL))}")
    more = len(entry.lines) - _MOST_IN_CELL
    parts += [f"… {more} more"] if more > 0 else []
    return "<br>".join(parts)


def _is_whole(entry: Entry) -> bool:
    """Return whether the row of an entry has all of it."""
    if entry.change.action in (Action.CREATE, Action.REPLACE, Action.DELETE):
        return False
    texts = [side for line in entry.lines for side in (line.name, line.before, line.after)]
    texts += [remark.message for remark in entry.remarks]
    return (
        len(entry.lines) <= _MOST_IN_CELL
        and not entry.notes
        and not any(line.hunk or line.comment for line in entry.lines)
        and all(len(text) <= _LONGEST_CELL for text in texts)
    )


def _details(entry: Entry, *, with_dangers: bool) -> str:
    fields = field_lines(entry.change) if not entry.grouped else iter(entry.lines)
    diff = (cut_inside(line, _LONGEST_LINE) for field in fields for line in _diff(field))
    # A limit, so that a huge change does not displace all others.
    lines, missing = within(diff, _LONGEST_BLOCK)
    lines += [f"  … {missing} more lines in the plan file"] if missing else []
    fence, name = _fence(lines), html.escape(shortened(entry.title)).replace("#", "&#35;")
    action = entry.change.action
    about = [
        f"- {_ICONS[remark.severity]} `{remark.rule}`: {short_markup(remark.message)}"
        for remark in entry.remarks
        if with_dangers or remark.severity is not Severity.DANGER
    ]
    about += [f"- {short_markup(note)}" for note in entry.notes]
    block = [
        "<details>",
        f"<summary>{SIGNS[action].text} {action.value} <code>{name}</code></summary>",
        "",
        *about,
        *([""] if about else []),
        *([f"{fence}diff", *lines, fence] if lines else []),
        "</details>",
        "",
    ]
    return "\n".join(block)


def _diff(line: FieldLine) -> Iterator[str]:
    note = f"  # {line.comment}" if line.comment else ""
    if line.hunk:
        yield f"  {line.name}:{note}"
        yield from (f"{part[:2]}  {part[2:]}" for part in line.hunk)
        return
    if line.before:
        sign = " " if line.kind is LineKind.KEPT else "-"
        yield f"{sign} {line.name}: {line.before}{'' if line.after else note}"
    if line.after:
        yield f"+ {line.name}: {line.after}{note}"


def _fence(lines: list[str]) -> str:
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    return "`" * max(3, longest + 1)


def _notes(document: Document) -> Iterator[str]:
    yield from (f"- {marked_up(item.text)}" for item in document.section(Part.NOTES).items)
    if document.unmanaged:
        yield f"- {document.unmanaged_count}"
