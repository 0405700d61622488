"""States of exports as one HTML file, which needs no network and runs no code but its own."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.status import ExportStatus, State, StatusReport
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.page import page
from reconciler.render.page import text as _text
from reconciler.render.status import (
    SIGNS,
    counts,
    lag,
    last_run,
    rows_a_day,
    status_word,
    where,
)
from reconciler.render.status_charts import charts, spark
from reconciler.render.status_page import SCRIPT, STYLE

_MOST_CHARTS = 1_000
"""The exports with charts, the worst first: a page with more of them is slow."""
_HEADINGS = ("Export", "Last run", "State", "Lag", "Rows/day", "Next run", "Latest runs")


def status_as_html(report: StatusReport, _: RenderOptions = DEFAULTS) -> str:
    """Return a page: counts as filters, then every export, the worst first."""
    title = f"Exports of {report.environment}"
    return page(
        title,
        (
            f"<header><h1>{_text(title)}</h1>\n<p>{_text(where(report))}</p>\n",
            f"<p>{_text(counts(report))}</p></header>\n",
            *_filters(report),
            '<main>\n<div class="row head" aria-hidden="true"><span></span>',
            *(f"<span>{heading}</span>" for heading in _HEADINGS),
            "</div>\n",
            *(
                _export(export, report, with_charts=position < _MOST_CHARTS)
                for position, export in enumerate(report.exports)
            ),
            '<p id="none" hidden>No export matches the filters.</p>\n</main>\n',
            *_missing(report),
        ),
        style=STYLE,
        script=SCRIPT,
    )


def _filters(report: StatusReport) -> Iterator[str]:
    yield '<form class="filters" role="search">\n<fieldset><legend>State</legend>'
    for state in State:
        number = len(report.of(state))
        if number:
            word = state.replace("-", " ")
            box = f'<input type="checkbox" name="state" value="{state}" checked>'
            yield f'<label class="tile {state}">{box}<b>{number:,}</b> '
            yield f"{SIGNS[state]} {word}</label>"
    yield "</fieldset>\n"
    parents = sorted({export.parent_name or "" for export in report.exports})
    if len(parents) > 1:
        options = "".join(
            f'<option value="{_text(parent)}">{_text(parent) or "none"}</option>'
            for parent in parents
        )
        yield f'<label>Project <select name="parent"><option value="*">all</option>{options}'
        yield "</select></label>\n"
    yield '<label>Text <input type="search" name="text" autocomplete="off"></label>\n</form>\n'


def _export(export: ExportStatus, report: StatusReport, *, with_charts: bool) -> str:
    next_run = export.next_run.strftime("%m-%d %H:%M") if export.next_run is not None else "-"
    cells = (
        last_run(export, report.at),
        status_word(export),
        lag(export),
        rows_a_day(export),
        next_run,
    )
    facts = "".join(
        f'<span data-label="{heading}">{_text(cell)}</span>'
        for heading, cell in zip(_HEADINGS[1:], cells, strict=False)
    )
    notes = "".join(f"<li>{_text(' '.join(note.message.split()))}</li>" for note in export.notes)
    notes = f'<ul class="notes">{notes}</ul>' if notes else ""
    address = str(export.address)
    word = export.state.replace("-", " ")
    badge = "" if export.managed else ' <small class="badge">unmanaged</small>'
    searched = f"{address} {export.name} {export.parent_name or ''}".casefold()
    return (
        f'<details class="{export.state}" data-state="{export.state}" '
        f'data-parent="{_text(export.parent_name or "")}" data-text="{_text(searched)}">\n'
        f'<summary class="row"><span class="sign" title="{word}">{SIGNS[export.state]}</span>'
        f'<span class="name"><b>{_text(export.name)}</b>{badge}'
        f"<small>{_text(export.parent_name or '')}</small></span>{facts}"
        f'<span class="bars">{spark(export)}</span>{notes}</summary>\n'
        f'<div class="more"><p><code>{_text(address)}</code> · {_text(export.interval)} · {word}'
        f"{_link(export)}</p>\n"
        f"{_pictures(export, report) if with_charts else ''}</div>\n</details>\n"
    )


def _pictures(export: ExportStatus, report: StatusReport) -> str:
    return f'<div class="charts">{charts(export, report.at)}</div>' if export.runs else ""


def _link(export: ExportStatus) -> str:
    if export.page is None or not export.page.startswith(("https://", "http://")):
        return ""
    return f' · <a href="{_text(export.page)}" rel="noreferrer">page of the export</a>'


def _missing(report: StatusReport) -> Iterator[str]:
    if report.missing:
        items = "".join(f"<li><code>{_text(str(item))}</code></li>" for item in report.missing)
        yield f"<section><h2>Not created yet</h2><ul>{items}</ul></section>\n"
