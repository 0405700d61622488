"""States of exports as Markdown, for comments and summaries of jobs."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.status import ExportStatus, State, StatusReport
from reconciler.render.markup import code, inline, marked_up, within
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.status import (
    SIGNS,
    counts,
    label,
    lag,
    last_run,
    remarks,
    rows_a_day,
    status_word,
    where,
)

_LIMIT = 60_000
"""Characters of a comment that forges accept, with some space left."""


def status_as_markdown(report: StatusReport, options: RenderOptions = DEFAULTS) -> str:
    """Return the counts, then a table of the exports that are not fine, all if verbose."""
    shown = [export for export in report.exports if options.verbose or export.state is not State.OK]
    head = f"### {inline(report.environment)}: {inline(counts(report))}\n{inline(where(report))}\n"
    lines, rest = within(_rows(shown, report, links=options.links), _LIMIT - len(head))
    if lines:
        head += "\n| | export | in | last run | state | lag | rows/day | note |\n"
        head += "|---|---|---|---|---|---|---|---|\n"
    rows = "".join(f"{line}\n" for line in lines)
    return head + rows + (f"\n… and {rest:,} more exports\n" if rest else "")


def _rows(exports: list[ExportStatus], report: StatusReport, *, links: bool) -> Iterator[str]:
    for export in exports:
        name = (code if export.managed else inline)(label(export))
        if links and export.page is not None:
            name = f"[{name}](<{_address(export.page)}>)"
        cells = (
            SIGNS[export.state],
            name,
            inline(export.parent_name or ""),
            inline(last_run(export, report.at)),
            inline(status_word(export)),
            inline(lag(export)),
            inline(rows_a_day(export)),
            marked_up(remarks(export)),
        )
        yield f"| {' | '.join(cells)} |"


def _address(page: str) -> str:
    """Return an address in which nothing ends the link."""
    return page.replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
