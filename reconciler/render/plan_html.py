"""A plan as one HTML file: dangers first, filters, and every change under its address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from reconciler.model.plan import Change, Plan, RecentRun, Severity
from reconciler.model.run import COMPLETED, FAILED
from reconciler.model.text import printable, shortened
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import Bar
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.page import filters, marked, page, strip, text
from reconciler.render.plan_document import (
    HEADING,
    Document,
    document_of,
    project_of,
    within_budget,
)
from reconciler.render.plan_entries import Entry, Remark
from reconciler.render.plan_fields import FieldLine, field_lines
from reconciler.render.words import SEVERITIES, SIGNS, counted, title

_MOST_FACTS = 5
_LONGEST_FACT = 160
_MOST_NEW = 40
_LONGEST_RUN = 40
_SPACE = re.compile(r"\s")
_STYLE = """
.runs{grid-column:2/-1;display:flex;flex-wrap:wrap;gap:0 .6rem;align-items:center;color:var(--dim)}
code,pre,td,.facts{font-family:ui-monospace,monospace;font-size:.9em}
.box{border:1px solid var(--line);border-left:4px solid var(--red);border-radius:6px;
padding:.1rem .9rem;margin:1rem 0}
.box.later{border-left-color:var(--amber)}
.box h2{margin:.5rem 0;color:var(--red)}
.box.later h2{color:var(--amber)}
ul{margin:.4rem 0;padding-left:1.2rem}
.entry{border-bottom:1px solid var(--line);content-visibility:auto;
contain-intrinsic-size:auto 4rem}
.entry>summary{display:grid;grid-template-columns:2.2rem 1fr auto;gap:0 .6rem;
padding:.45rem .4rem}
.entry>summary{list-style:none}
.entry>summary::-webkit-details-marker{display:none}
.entry>summary .name::after{content:" ▸";color:var(--dim)}
.entry[open]>summary .name::after{content:" ▾"}
header strong{color:var(--fg)}
.sign{font:700 1rem ui-monospace,monospace;white-space:nowrap}
.create .sign{color:var(--green)}
.update .sign{color:var(--amber)}
.replace .sign{color:var(--violet)}
.pause .sign,.unpause .sign{color:var(--blue)}
.delete .sign{color:var(--red)}
.name b{font-weight:600}
.place{color:var(--dim);font-size:.85rem;text-align:right}
.facts,.remark{grid-column:2/-1;color:var(--dim)}
.facts span{display:block}
.remark{color:var(--fg)}
.remark b{font-weight:600}
.remark.danger b,.removed{color:var(--red)}
.remark.warning b{color:var(--amber)}
.added{color:var(--green)}
.rule{white-space:nowrap}
.more{padding:0 .4rem 1rem 3.2rem}
table{width:100%}
th,td{padding:.2rem .8rem .2rem 0;
border-top:1px solid var(--line);font-weight:400}
thead th{border-top:0;color:var(--dim);font-size:.85rem}
tbody th{width:22%}
pre span{display:block}
.members{columns:18rem;list-style:none;padding:0}
.members li{break-inside:avoid}
:target{outline:2px solid var(--blue);outline-offset:2px}
@media (max-width:40rem){.entry>summary{grid-template-columns:2.2rem 1fr}
.place{grid-column:2;text-align:left}
.more{padding-left:.4rem}
thead{display:none}
.fields tr,.fields th,.fields td{display:block;width:auto;border:0;padding:.05rem 0}
.fields tr{border-top:1px solid var(--line);padding:.3rem 0}
.fields td[data-label]:not(:empty)::before{content:attr(data-label) ": ";color:var(--dim)}}
@media print{form,.more>p{display:none}
html,body{font-size:11px}
body{max-width:none;padding:0}
.entry{content-visibility:visible;break-inside:avoid-page}}
"""
_BUTTONS = (
    '<button type="button" id="expand">Expand all</button>'
    '<button type="button" id="collapse">Collapse all</button>\n'
)
_SIDES = {"-": ' class="removed"', "+": ' class="added"'}
_PageIds: TypeAlias = Mapping[str, str]
"""The ids of elements by those of changes."""


def plan_as_html(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return a page: violations, dangers, filters, then every change in the order of the plan."""
    document = document_of(plan)
    ids = _ids(document)
    name = f"Plan for {plan.source.environment}"
    body = (
        *_header(document, name, options),
        "<main>\n",
        *_new(document, ids),
        *_violations(document),
        *_dangers(document, ids),
        *_filters(document),
        *(_entry(entry, ids) for entry in document.entries),
        *_drift(document, ids),
        *_notes(document),
        "</main>\n",
    )
    return page(name, body, style=_STYLE)


def _ids(document: Document) -> Mapping[str, str]:
    """Return the id of every change on the page: its address, or with the action if taken."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for entry in (*document.entries, *document.drift):
        for change in entry.changes:
            names = (text(_SPACE.sub("_", name)) for name in (str(change.address), change.id))
            ids[change.id] = next((name for name in names if name not in taken), "")
            taken.add(ids[change.id])
    return ids


def _header(document: Document, name: str, options: RenderOptions) -> Iterator[str]:
    plan = document.plan
    counts = "No changes. Live state matches the configuration." if plan.empty else document.summary
    yield f"<header><h1>{text(name)}</h1>\n<p>{text(document.environment)}</p>\n"
    parts = (document.versions, document.id)
    yield f"<p>{text(' · '.join(filter(None, parts)))}</p>\n"
    yield f"<p><strong>{text(counts)}</strong></p>\n"
    yield f"<p>{text(options.cost)}</p>\n" if options.cost else ""
    yield "</header>\n"


def _new(document: Document, ids: _PageIds) -> Iterator[str]:
    lines, rest = within_budget(document.new, _MOST_NEW)
    items = []
    for line in lines:
        style = ' class="removed"' if line.is_danger else ""
        users = f'<a href="#{ids[line.changes[0].id]}">{text(line.users)}</a>'
        items.append(f"<b{style}>{text(line.text)}</b> {users}")
    items += [text(rest)] if rest else []
    yield from _box("box" if lines and lines[0].is_danger else "box later", HEADING, items)


def _violations(document: Document) -> Iterator[str]:
    items: dict[bool, list[str]] = {False: [], True: []}
    for violation in document.plan.refusals:
        place = f" <code>{text(str(violation.at))}</code>" if violation.at is not None else ""
        hint = f"<br>hint: {marked(violation.allow)}" if violation.allow else ""
        message = f"{place}: {marked(violation.message)}{hint}"
        items[violation.after_merge].append(f"<code>{text(violation.rule)}</code>{message}")
    yield from _box("box", "Refused by policy. Nothing will be applied.", items[False])
    yield from _box("box later", "Danger: takes effect after the merge.", items[True])
    yield from _box("box later", "Loosened since the apply", [*map(marked, document.loosened)])


def _dangers(document: Document, ids: _PageIds) -> Iterator[str]:
    items = [
        f'{entry.change.action.value} <a href="#{ids[entry.change.id]}">{text(entry.title)}</a>: '
        f"{_message(remark)}"
        for entry, remark in document.dangerous
    ]
    yield from _box("box", "Dangers", items)


def _box(style: str, heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f'<section class="{style}"><h2>{heading}</h2>\n<ul>'
        yield from (f"<li>{item}</li>" for item in items)
        yield "</ul></section>\n"


def _message(remark: Remark) -> str:
    return f'{marked(remark.full)} <code class="rule">{text(remark.rule)}</code>'


def _filters(document: Document) -> Iterator[str]:
    plan = document.plan
    if plan.empty:
        return
    boxes = ((action.value, text(count)) for action, count in counted(plan).items())
    worst = {_worst(entry) for entry in document.worst_first}
    severities = [severity.value for severity in SEVERITIES if severity.value in worst]
    lists = (
        ("Severity", "severity", severities),
        ("Project", "parent", sorted({project_of(item) for item in plan.effective})),
    )
    yield from filters("Action", boxes, (item for item in lists if item[2]), _BUTTONS)


def _worst(entry: Entry) -> str:
    """Return the worst severity of an entry, "" without one."""
    return next((severity for severity in Severity if severity.rank == entry.rank[0]), "")


def _drift(document: Document, ids: _PageIds) -> Iterator[str]:
    if document.drift:
        yield "<h2>Drift</h2>\n"
        yield '<p class="dim">Live state changed since the apply. '
        yield "This plan sets it back; <code>reconciler drift --write</code> keeps it.</p>\n"
        yield from (_entry(entry, ids) for entry in document.drift)


def _entry(entry: Entry, ids: _PageIds) -> str:
    action = entry.change.action
    identity = ids[entry.change.id]
    projects = "&#10;".join(map(text, dict.fromkeys(map(project_of, entry.changes))))
    searched = " ".join(f"{title(change)} {project_of(change)}" for change in entry.changes)
    worst = _worst(entry)
    is_open = " open" if worst == Severity.DANGER else ""
    at = entry.change.at
    place = text(place_as_text(at)) if at is not None and not entry.grouped else ""
    facts = "".join(f"<span>{_fact(line)}</span>" for line in entry.lines[:_MOST_FACTS])
    more = len(entry.lines) - _MOST_FACTS
    facts += f"<span>… {more} more</span>" if more > 0 else ""
    remarks = "".join(
        f'<span class="remark {remark.severity.value}"><b>{remark.severity.value}</b> '
        f"{_message(remark)}</span>"
        for remark in entry.remarks
    )
    return (
        f'<details class="entry {action.value}" id="{identity}" data-state="{action.value}" '
        f'data-severity="{worst}" data-parents="{projects}" '
        f'data-text="{text(searched.casefold())}"{is_open}>\n'
        f'<summary><span class="sign" aria-hidden="true">{SIGNS[action].text}</span>'
        f'<span class="name">{action.value} <b>{text(entry.title)}</b></span>'
        f'<span class="place">{place}</span><span class="facts">{facts}</span>{remarks}'
        f"{'' if entry.grouped else _runs(entry.change.runs)}</summary>\n"
        f'<div class="more">{"".join(_details(entry, identity, ids))}</div>\n</details>\n'
    )


def _runs(runs: Sequence[RecentRun]) -> str:
    """Return a bar for every run, the oldest at the left, and a line about them."""
    if not runs:
        return ""
    bars, failed = [], sum(run.status in FAILED for run in runs)
    for run in reversed(runs):
        kind = "bad" if run.status in FAILED else "good" if run.status == COMPLETED else "open"
        # Heights differ, since not every reader can distinguish the colours.
        bars.append(Bar({"good": 2, "bad": 1}.get(kind), kind, _run(run)))
    caption = f"last run {_run(runs[0])}"
    caption += f" · {failed} of {len(runs)} failed" if failed else ""
    return f'<span class="runs">{strip(bars)}<span>{text(caption)}</span></span>'


def _run(run: RecentRun) -> str:
    """Return `Completed 2026-06-01 10:00 UTC`. A saved plan may contain any text."""
    status, end = (shortened(printable(part), _LONGEST_RUN) for part in (run.status, run.end))
    return f"{status} {end[:16].replace('T', ' ')} UTC" if end else status


def _fact(line: FieldLine) -> str:
    if line.hunk:
        return text(line.name)
    sides = [shortened(side, _LONGEST_FACT) for side in (line.before, line.after) if side]
    return text(f"{line.name}  {' → '.join(sides)}")


def _details(entry: Entry, identity: str, ids: _PageIds) -> Iterator[str]:
    about = [*entry.reasons, *entry.notes]
    if about:
        yield f"<ul>{''.join(f'<li>{marked(item)}</li>' for item in about)}</ul>\n"
    if entry.grouped:
        yield '<ul class="members">'
        for change in entry.changes:
            # The entry has the id of its first change.
            own = "" if change is entry.change else f' id="{ids[change.id]}"'
            yield f"<li{own}>{text(title(change))}{_place(change)}{_runs(change.runs)}</li>"
        yield "</ul>\n"
    lines = entry.lines if entry.grouped else tuple(field_lines(entry.change))
    if lines:
        yield '<table class="fields"><thead><tr><th scope="col">Field</th>'
        yield '<th scope="col">Before</th><th scope="col">After</th></tr></thead>\n<tbody>'
        yield from map(_row, lines)
        yield "</tbody></table>\n"
    yield f'<p><a href="#{identity}">Link to this entry</a></p>'


def _place(change: Change) -> str:
    if change.at is None:
        return ""
    return f' <small class="dim">{text(place_as_text(change.at))}</small>'


def _row(line: FieldLine) -> str:
    comment = f'<br><small class="dim">{text(line.comment)}</small>' if line.comment else ""
    head = f'<tr><th scope="row">{text(line.name)}{comment}</th>'
    if line.hunk:
        hunk = "".join(f"<span{_SIDES.get(part[:1], '')}>{text(part)}</span>" for part in line.hunk)
        return f'{head}<td colspan="2"><pre>{hunk}</pre></td></tr>\n'
    before = f'<td class="removed" data-label="before">{text(line.before)}</td>'
    after = f'<td class="added" data-label="after">{text(line.after)}</td>'
    return f"{head}{before}{after}</tr>\n"


def _notes(document: Document) -> Iterator[str]:
    if document.notes or document.unmanaged:
        yield "<section><h2>Notes</h2>\n<ul>"
        yield from (f"<li>{marked(note)}</li>" for note in document.notes)
        if document.unmanaged:
            objects = "".join(f"<li>{text(line)}</li>" for line in document.unmanaged)
            summary = f"<summary>{document.unmanaged_count}</summary>"
            yield f"<li><details>{summary}<ul>{objects}</ul></details></li>"
        yield "</ul></section>\n"
