"""A plan as a comment of a pull request, the worst changes first.

A comment may have 65,536 characters. Parts are added in order of importance while they fit, and
what does not fit is counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.kind import Action
from reconciler.model.plan import Plan, Severity
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
    document_of,
    top_of,
)
from reconciler.render.plan_entries import Entry, Remark
from reconciler.render.plan_fields import FieldLine, LineKind, field_lines
from reconciler.render.words import SIGNS, counted, counted_nouns, deleted_in, resources, title

_MARGIN = 600
_LONGEST_LINE = 500
_LONGEST_ITEM = 2_000
_LONGEST_BRIEF = 90
_LONGEST_BLOCK = 8_000
_LONGEST_GROUP = 2_000
_LONGEST_NAME = 120
_LONGEST_CELL = 160
_MOST_IN_CELL = 5
_MOST_MEMBERS = 60
_UNMARKED = re.compile(r"[^\w./ -]|--+")
_ICONS = {Severity.DANGER: "🛑", Severity.WARNING: "⚠", Severity.INFO: "ℹ"}


def plan_as_markdown(
    plan: Plan, options: RenderOptions = DEFAULTS, *, with_dangers: bool = True
) -> str:
    """Return a marker, the counts, dangers, violations, a table, then a block for every entry.

    `with_dangers` unless they are shown above.
    """
    document = document_of(plan)
    parts = [
        f"{_marker(document.plan.source.environment, options)}\n{_title(document)}\n",
        f"{_source(document, options)}\n",
    ]
    space = options.limit - _MARGIN - sum(len(part) + 1 for part in parts)
    for pieces, share, rest in _sections(document, options, with_dangers=with_dangers):
        kept, missing = within(pieces, space // share)
        space -= sum(len(piece) + 1 for piece in kept)
        kept += [rest(missing)] if missing else []
        text = "\n".join(kept).rstrip("\n")
        parts += [f"{text}\n"] if text else []
    return "\n".join(parts)


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
    is_refused = any(not violation.after_merge for violation in plan.refusals)
    refused = " · refused by policy" if is_refused else ""
    return f"### {environment}: {counts or 'no changes'}{dangers}{refused}"


def _source(document: Document, options: RenderOptions) -> str:
    """Return what the plan was made from, where it applies, and what it takes."""
    source = document.plan.source
    where = document.environment.removeprefix(printable(source.environment)).lstrip(" ·")
    counts = resources(document.plan)
    parts = (document.versions, document.id, where, counts, options.cost)
    return inline(shortened(" · ".join(filter(None, parts)), _LONGEST_LINE))


def _sections(
    document: Document, options: RenderOptions, *, with_dangers: bool
) -> Iterator[tuple[Iterator[str], int, Callable[[int], str]]]:
    """Yield the pieces of each section, its share of the space left, and how to count the rest."""
    entries, is_brief = document.entries, document.section(Part.DANGERS).is_brief
    hint = "`reconciler show FILE` prints the whole plan"
    hint += f", {link('the job', options.page)} has it." if options.page else "."
    left_out = {Part.NOTES} if with_dangers else {Part.NOTES, *TOP}
    for section in document.sections:
        if section.items and section.part not in left_out:
            share = 1 if section.part is Part.NEW else 3
            quote = "" if section.part is Part.NEW else "> "
            yield _messages(section), share, partial("{}- … and {} more".format, quote)
    yield _table(entries), 2, lambda n: f"\n… and {several(n, 'more row')} not shown. {hint}"
    yield (
        (_details(entry, with_dangers=is_brief) for entry in entries if not _is_whole(entry)),
        1,
        lambda n: f"\n{counted_nouns(n, 'entry', 'entries')} not shown. {hint}",
    )
    yield _notes(document), 1, lambda _: ""


def _messages(section: Section) -> Iterator[str]:
    """Yield the messages of a section, in an alert unless they are new places."""
    quote = "" if section.part is Part.NEW else "> "
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


def _table(entries: tuple[Entry, ...]) -> Iterator[str]:
    if entries:
        yield "| | resource | change | consequences |\n|---|---|---|---|"
    for entry in entries:
        sign = SIGNS[entry.change.action].text
        by_rule = {remark.rule: remark for remark in reversed(entry.remarks)}
        remarks = "<br>".join(map(_in_cell, reversed(by_rule.values())))
        yield f"| {sign} | {_name(entry)} | {_changed(entry)} | {remarks} |"


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
        keys = listed((change.address.key for change in entry.changes), _MOST_MEMBERS)
        return f"{inline(entry.title)}: {inline(shortened(keys, _LONGEST_GROUP))}"
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
