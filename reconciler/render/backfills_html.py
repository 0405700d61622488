"""Backfills as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.backfill_plan import BackfillPlan
from reconciler.render.backfills import counts, range_ends
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.page import STYLE, marked, page, text

_STYLE = f"""{STYLE}
table{{border-collapse:collapse;margin:1rem 0}}
th,td{{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);text-align:left}}
th,td.number{{white-space:nowrap}}
td.number,th.number{{text-align:right}}
.danger{{color:var(--red)}}
.warning{{color:var(--amber)}}
"""


def backfills_as_html(plan: BackfillPlan, options: RenderOptions = DEFAULTS) -> str:
    """Return a page: where it runs, what to know before, and a table of the ranges."""
    name = f"Backfills of {plan.address}"
    body = (*_header(plan, name, options), "<main>\n", *_remarks(plan), *_table(plan), "</main>\n")
    return page(name, body, style=_STYLE, script="")


def _header(plan: BackfillPlan, name: str, options: RenderOptions) -> Iterator[str]:
    source = plan.source
    place = (source.environment, source.base_url, f"organization {source.organization}")
    export = filter(None, (plan.name, plan.parent_name, f"plan {plan.id[:8]}"))
    yield f"<header>\n<h1>{text(name)}</h1>\n<p>{text(' · '.join(place))}</p>\n"
    yield f"<p>{text(' · '.join(export))}</p>\n<p><strong>{text(counts(plan))}</strong></p>\n"
    yield f"<p>{text(options.cost)}</p>\n" if options.cost else ""
    yield "</header>\n"


def _remarks(plan: BackfillPlan) -> Iterator[str]:
    items = [
        f'<li><strong class="{item.severity.value}">{item.severity.value}</strong> '
        f"{marked(item.message)} <code>{text(item.rule)}</code></li>\n"
        for item in plan.consequences
    ]
    items += [f"<li>{marked(note)}</li>\n" for note in plan.notes]
    yield f"<ul>\n{''.join(items)}</ul>\n" if items else ""


def _table(plan: BackfillPlan) -> Iterator[str]:
    if not plan.backfills:
        return
    yield (
        '<table>\n<thead><tr><th scope="col">from</th><th scope="col">to</th>'
        '<th scope="col" class="number">runs</th><th scope="col">order</th></tr></thead>\n<tbody>\n'
    )
    for item in plan.backfills:
        first, last = range_ends(item)
        order = "tried first" if item.trial else ""
        yield (
            f'<tr><td>{first}</td><td>{last}</td><td class="number">{item.runs:,}</td>'
            f"<td>{order}</td></tr>\n"
        )
    yield "</tbody>\n</table>\n"
