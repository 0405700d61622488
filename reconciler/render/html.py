"""HTML pages, written by the templates beside this module. They load nothing from elsewhere."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from reconciler.model.plan import Plan, RecentRun, Severity
from reconciler.model.run import COMPLETED, FAILED
from reconciler.model.text import printable, shortened
from reconciler.packaged import packaged
from reconciler.render import plan_document
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import CODE, Bar, Document, Table
from reconciler.render.options import DEFAULTS, Colour, RenderOptions
from reconciler.render.plan_entries import SEVERITIES, SIGNS, Entry, counted, title
from reconciler.render.plan_fields import field_lines

_LONGEST_RUN = 40
_SPACE = re.compile(r"\s")
_COLOURS = {
    Colour.RED: "red",
    Colour.BOLD_RED: "red",
    Colour.YELLOW: "amber",
    Colour.CYAN: "blue",
    Colour.GREEN: "green",
    Colour.MAGENTA: "violet",
    Colour.DIM: "dim",
}


def plan_as_html(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return a page: violations, dangers, filters, then every change in the order of the plan."""
    document = plan_document.document_of(plan)
    worst = {_worst(entry) for entry in document.entries}
    return _written(
        "plan",
        document=document,
        counts={action.value: text for action, text in counted(plan).items()},
        severities=[severity.value for severity in SEVERITIES if severity.value in worst],
        cost=options.cost,
    )


def as_html(document: Document) -> str:
    """Return a page of a report: the result, filters, then every block."""
    tables = (block for block in document.blocks if isinstance(block, Table))
    rows = [row for table in tables for row in table.rows if row.state]
    states = list(dict.fromkeys((row.state, row.sign) for row in rows))
    counts = {
        state: f"{sum(row.state == state for row in rows):,} {sign} {state.replace('-', ' ')}"
        for state, sign in states
    }
    return _written(
        "report",
        document=document,
        title=" ".join(cell.text for cell in document.heading),
        states=counts,
        parents=sorted({row.parent for row in rows}),
    )


def _written(name: str, **values: Any) -> str:
    return _templates().get_template(f"{name}.html.j2").render(values)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(packaged("render/templates")),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
        finalize=_text,
    )
    templates.tests["of"] = lambda block, name: block.__class__.__name__ == name
    templates.filters |= {
        "anchor": lambda change: _SPACE.sub("_", printable(change.id)),
        "digest": lambda text: b64encode(sha256(text.encode()).digest()).decode(),
        "marked": lambda text: Markup(CODE.sub(r"<code>\1</code>", str(_text(text)))),  # noqa: S704
        "parent": plan_document.project_of,
        "short": shortened,
    }
    templates.globals |= {
        "at": place_as_text,
        "bars": _bars,
        "caption": _caption,
        "colours": _COLOURS,
        "field_lines": lambda change: list(field_lines(change)),
        "signs": SIGNS,
        "title": title,
        "worst": _worst,
    }
    return templates


def _text(value: object) -> Markup:
    """Return text that is no markup, also inside an attribute, and no command of a CI runner."""
    if isinstance(value, Markup):
        return value
    return Markup(str(escape(printable(str(value)))).replace("##", "&#35;#"))  # noqa: S704 - escaped


def _worst(entry: Entry) -> str:
    """Return the worst severity of an entry, "" without one."""
    return next((severity for severity in Severity if severity.rank == entry.rank[0]), "")


def _bars(runs: Sequence[RecentRun]) -> list[Bar]:
    """Return a bar for every run, the oldest first."""
    bars = []
    for run in reversed(runs):
        kind = "bad" if run.status in FAILED else "good" if run.status == COMPLETED else "open"
        # Heights differ, since not every reader can distinguish the colours.
        bars.append(Bar({"good": 2, "bad": 1}.get(kind), kind, _run(run)))
    return bars


def _caption(runs: Sequence[RecentRun]) -> str:
    failed = sum(run.status in FAILED for run in runs)
    return f"last run {_run(runs[0])}" + (f" · {failed} of {len(runs)} failed" if failed else "")


def _run(run: RecentRun) -> str:
    """Return `Completed 2026-06-01 10:00 UTC`. A saved plan may contain any text."""
    status, end = (shortened(printable(part), _LONGEST_RUN) for part in (run.status, run.end))
    return f"{status} {end[:16].replace('T', ' ')} UTC" if end else status
