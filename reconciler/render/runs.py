"""Runs as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import datetime, timedelta

from reconciler.model.run import Run
from reconciler.model.run_report import NO_END, RunChange, RunReport, Subject, duration_of_run
from reconciler.model.run_status import BILLING
from reconciler.model.wording import printable, quoted, several, shortened
from reconciler.render.counts import short_count
from reconciler.render.durations import duration_as_text
from reconciler.render.markup import code, inline
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style, aligned, width_of

_HEADINGS = ("interval (UTC)", "status", "began", "took", "rows", "id", "")
_LONGEST_ERROR = 120
_SETTLED = "its interval was exported by another run"
_UNBOUNDED = "runs without a start are not in this order; list them with --order created"
_BILLING = (
    "the row quota was used up and nothing was exported; a backfill fails too until billing is "
    "settled"
)


def runs_as_text(report: RunReport, options: RenderOptions = DEFAULTS) -> str:
    """Return a table of runs, the newest first, or every field of one run."""
    style = options.style
    lines = [subject_as_text(report, style), ""]
    if report.detail:
        lines += _detail(report.runs[0], style)
    elif not report.runs:
        lines.append("no runs")
    else:
        lines += _table(report, style)
    lines += map(printable, _remarks(report))
    if options.links and report.page is not None:
        lines += ["", printable(report.page)]
    return "".join(f"{line}\n" for line in lines)


def runs_as_markdown(report: RunReport, options: RenderOptions = DEFAULTS) -> str:
    """Return a table with a row for each run."""
    subject = report
    lines = [f"### Runs of {code(str(subject.address))} {inline(subject.name)}", ""]
    if report.runs:
        lines += ["| interval (UTC) | status | began | took | rows | id | note |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [_markdown_row(run, report) for run in report.runs]
    else:
        lines.append("no runs")
    remarks = [inline(text) for text in _remarks(report)]
    lines += ["", *remarks] if remarks else []
    if options.links and subject.page is not None:
        lines += ["", inline(subject.page)]
    return "".join(f"{line}\n" for line in lines)


def change_as_text(change: RunChange, style: Style) -> str:
    """Return a line about a run that is new or has another status."""
    run = change.run
    status = style.paint(_colour(run), printable(run.status))
    before = f"{printable(change.before)} -> " if change.before is not None else ""
    parts = [f"{interval(run)}  {before}{status}"]
    parts += [f"{_rows(run)} rows"] if run.records is not None else []
    parts += [_error(run)] if run.error else []
    return "  ".join([*parts, printable(run.id)]) + "\n"


def subject_as_text(subject: Subject, style: Style) -> str:
    """Return the address and the name of an object, and where it is."""
    parent = f" in {printable(subject.parent_name)}" if subject.parent_name else ""
    address = style.paint(Colour.BOLD, printable(str(subject.address)))
    return f"{address} {quoted(subject.name)}{parent} · {printable(subject.environment)}"


def interval(run: Run) -> str:
    """Return the interval of a run: the end without a date on the same day."""
    if run.end is None:
        return "-"
    if run.start is None:
        return f"up to {clock(run.end)}"
    if run.end.date() == run.start.date():
        return f"{clock(run.start)} to {run.end:%H:%M}"
    return f"{clock(run.start)} to {clock(run.end)}"


def clock(moment: datetime | None) -> str:
    """Return a time in UTC to the minute."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _detail(run: Run, style: Style) -> Iterator[str]:
    yield from (
        f"  {name:<10} {value}"
        for name, value in (
            ("run", printable(run.id)),
            ("status", style.paint(_colour(run), printable(run.status))),
            ("interval", interval(run)),
            ("began", _exact(run.created_at)),
            ("ended", _ended(run)),
            ("took", _took(run)),
            ("rows", "-" if run.records is None else f"{run.records:,}"),
            ("bytes", "-" if run.bytes is None else f"{run.bytes:,}"),
            ("backfill", printable(run.backfill or "-")),
        )
    )
    if run.error:
        yield from style.wrapped(printable(run.error), "  error      ", " " * 13)


def _table(report: RunReport, style: Style) -> Iterator[str]:
    settled = report.settled
    rows = [_cells(run) for run in report.runs]
    widths = [max(map(width_of, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    yield style.paint(Colour.DIM, _line(_HEADINGS, widths))
    for run, cells in zip(report.runs, rows, strict=True):
        line = _line(cells, widths)
        status = printable(run.status)
        yield line.replace(status, style.paint(_colour(run), status), 1)
        yield from (f"    {note}" for note in _notes(run, settled))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"  {aligned(cells, widths)}".rstrip()


def _cells(run: Run) -> tuple[str, ...]:
    kind = "backfill" if run.backfill else ""
    return (
        interval(run),
        printable(run.status),
        clock(run.created_at),
        _took(run),
        _rows(run),
        printable(run.id),
        kind,
    )


def _markdown_row(run: Run, report: RunReport) -> str:
    notes = [*_notes(run, report.settled), *(["backfill"] if run.backfill else [])]
    interval_, status, began, took, rows, live_id, _ = _cells(run)
    cells = (interval_, status, began, took, rows)
    shown = " | ".join([*map(inline, cells), code(live_id), inline("; ".join(notes))])
    return f"| {shown} |"


def _notes(run: Run, settled: Container[str]) -> Iterator[str]:
    if run.error:
        yield _error(run)
    if run.status == BILLING:
        yield _BILLING
    if run.id in settled:
        yield _SETTLED


def _remarks(report: RunReport) -> Iterator[str]:
    if report.more:
        yield f"the newest {several(len(report.runs), 'run')}; list more with --limit N or --all"
    if report.hides_unbounded:
        yield f"note: {_UNBOUNDED}"
    if report.detail and report.runs[0].status == BILLING:
        yield f"note: {_BILLING}"


def _colour(run: Run) -> Colour | None:
    if run.completed:
        return Colour.GREEN
    if run.pending:
        return Colour.CYAN
    return Colour.RED if run.failed else Colour.YELLOW


def _ended(run: Run) -> str:
    if run.finished_at is None and run.status in NO_END:
        return "when it began"
    return "not yet" if run.finished_at is None and run.pending else _exact(run.finished_at)


def _took(run: Run) -> str:
    took = duration_of_run(run)
    return "-" if took is None else duration_as_text(took / timedelta(seconds=1))


def _rows(run: Run) -> str:
    return "-" if run.records is None else short_count(run.records)


def _exact(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _error(run: Run) -> str:
    return shortened(printable(" ".join((run.error or "").split())), _LONGEST_ERROR)
