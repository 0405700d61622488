"""Runs and logs of an object, and lines about what is new. Messages are untrusted text."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import datetime, timedelta

from reconciler.model.run import (
    BILLING,
    NO_END,
    LogEntry,
    LogLevel,
    LogReport,
    Matched,
    Run,
    RunChange,
    RunReport,
    Subject,
    duration_of_run,
)
from reconciler.model.text import printable, quoted, several, shortened
from reconciler.render.document import Cell, Column, Document, Facts, Line, Lines, Row, Table
from reconciler.render.durations import duration_as_text, short_count
from reconciler.render.options import RenderOptions
from reconciler.render.plan.words import counted_nouns
from reconciler.render.style import Colour, Style

_COLUMNS = tuple(map(Column, ("interval (UTC)", "status", "began", "took", "rows", "id", "")))
_LONGEST_ERROR = 120
_SETTLED = "its interval was exported by another run"
_UNBOUNDED = "runs without a start are not in this order; list them with --order created"
_BILLING = (
    "the row quota was used up and nothing was exported; a backfill fails too until billing is "
    "settled"
)

_LEVELS: dict[str, Colour] = {
    LogLevel.ERROR: Colour.RED,
    LogLevel.WARNING: Colour.YELLOW,
    LogLevel.DEBUG: Colour.DIM,
}
_LOG_COLUMNS = (Column("time"), Column("level", before=" "), Column("message", " ", padded=False))
_MATCHES = {
    Matched.BY_MESSAGE: "the service does not join logs to runs: these entries belong to the "
    "instance whose messages have the interval of the run",
    Matched.BY_TIME: "the service does not join logs to runs: these entries were logged while it "
    "ran, and some may be of other runs",
}


def runs_document(report: RunReport, options: RenderOptions) -> Document:
    """Return a table of runs, the newest first, or every field of one run."""
    runs: Facts | Table | Lines = Lines(("no runs",))
    if report.detail:
        runs = Facts(tuple(_detail(report.runs[0])), wraps=True)
    elif report.runs:
        settled = report.settled
        runs = Table(_COLUMNS, tuple(_row(run, settled) for run in report.runs), indent=2)
    remarks = Lines(tuple(_remarks(report)), attached=True)
    where = subject_line(report)
    return Document(
        (Cell("Runs of"), *where), where, (runs, remarks), after=page_of(report, options)
    )


def page_of(subject: Subject, options: RenderOptions) -> tuple[str, ...]:
    """Return the address of the page of an object, if it is wanted and known."""
    return (subject.page,) if options.links and subject.page is not None else ()


def change_as_text(change: RunChange, style: Style) -> str:
    """Return a line about a run that is new or has another status."""
    run = change.run
    status = style.paint(_colour(run), printable(run.status))
    before = f"{printable(change.before)} -> " if change.before is not None else ""
    parts = [f"{interval(run)}  {before}{status}"]
    parts += [f"{_rows(run)} rows"] if run.records is not None else []
    parts += [_error(run)] if run.error else []
    return "  ".join([*parts, printable(run.id)]) + "\n"


def subject_line(subject: Subject) -> Line:
    """Return the address and the name of an object, and where it is."""
    parent = f" in {subject.parent_name}" if subject.parent_name else ""
    name = f"{quoted(subject.name)}{parent} · {subject.environment}"
    return Cell(str(subject.address), Colour.BOLD, code=True), Cell(name)


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


def _detail(run: Run) -> Iterator[tuple[str, Cell]]:
    yield "run", Cell(run.id, code=True)
    yield "status", Cell(run.status, _colour(run))
    texts = {
        "interval": interval(run),
        "began": _exact(run.created_at),
        "ended": _ended(run),
        "took": _took(run),
        "rows": "-" if run.records is None else f"{run.records:,}",
        "bytes": "-" if run.bytes is None else f"{run.bytes:,}",
        "backfill": run.backfill or "-",
    }
    yield from ((name, Cell(text)) for name, text in texts.items())
    if run.error:
        yield "error", Cell(run.error)


def _row(run: Run, settled: Container[str]) -> Row:
    cells = (
        Cell(interval(run)),
        Cell(run.status, _colour(run)),
        Cell(clock(run.created_at)),
        Cell(_took(run)),
        Cell(_rows(run)),
        Cell(run.id, code=True),
        Cell("backfill" if run.backfill else ""),
    )
    return Row(cells, notes=tuple(_notes(run, settled)))


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


def logs_document(report: LogReport, options: RenderOptions) -> Document:
    """Return the entries, the oldest first."""
    where = subject_line(report)
    if report.run is not None:
        where += (Cell(f"· run {interval(report.run)}"),)
    entries = Table(_LOG_COLUMNS, tuple(map(_entry, report.entries)), headed=False, noun="line")
    remarks = tuple(f"note: {text}" for text in _log_remarks(report))
    blocks = (entries if report.entries else Lines(("no entries",)), Lines(remarks, attached=True))
    return Document((Cell("Log of"), *where), where, blocks, after=page_of(report, options))


def _entry(entry: LogEntry) -> Row:
    level = Cell(entry.level, _LEVELS.get(entry.level))
    return Row((Cell(_time(entry), Colour.DIM), level, Cell(entry.message)))


def entry_as_text(entry: LogEntry, style: Style) -> str:
    """Return the line of an entry."""
    colour = _LEVELS.get(entry.level)
    level = style.paint(colour, f"{printable(entry.level):<7}")
    return f"{style.paint(Colour.DIM, _time(entry))} {level} {printable(entry.message)}\n"


def _log_remarks(report: LogReport) -> Iterator[str]:
    if report.more:
        count = counted_nouns(len(report.entries), "entry", "entries")
        yield f"the newest {count}; list more with --limit N or --all"
    if report.matched in _MATCHES:
        yield _MATCHES[report.matched]


def _time(entry: LogEntry) -> str:
    return f"{entry.timestamp:%Y-%m-%d %H:%M:%S}"
