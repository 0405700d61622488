"""Runs, logs and backfills of exports. Messages are untrusted text."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import starmap
from typing import TypeVar

from msgspec.structs import replace

from reconciler.model.plan import Consequence, Severity
from reconciler.model.run import (
    BILLING,
    NO_END,
    BackfillEnd,
    BackfillPlan,
    BackfillRow,
    BackfillState,
    LogEntry,
    LogReport,
    Matched,
    ObjectBackfills,
    PlannedBackfill,
    Run,
    RunReport,
    Subject,
    duration_of_run,
)
from reconciler.model.text import (
    command_text,
    counted_nouns,
    duration_as_text,
    listed,
    named,
    printable,
    several,
    short_count,
    shortened,
)
from reconciler.model.times import moment_as_option
from reconciler.model.values import Address
from reconciler.render.document import (
    Cell,
    Column,
    Document,
    Facts,
    Group,
    Line,
    Lines,
    Row,
    Table,
    label_of,
)
from reconciler.render.options import Colour, RenderOptions, Style

_T = TypeVar("_T")
_RUN_COLUMNS = tuple(
    map(Column, ("interval (UTC)", "status", "", "began (UTC)", "took", "rows", "id"))
)
_LEAST_FIRST = (3, 4, 5, 6)
"""The columns that a narrow terminal leaves out: when it began, how long it took, rows, id."""
_SETTLED = "its interval was exported by another run"
_BILLING = (
    "the row quota was used up and nothing was exported; a backfill fails too until billing is "
    "settled"
)
_LEVELS = {"ERROR": Colour.RED, "WARNING": Colour.YELLOW, "DEBUG": Colour.DIM}
_LOG_COLUMNS = (Column("time"), Column("level", before=" "), Column("message", " ", padded=False))
_BY_TIME = (
    "the service does not join logs to runs: these entries were logged while it ran, and some may "
    "be of other runs"
)
_MOST_LISTED = 3
_SEVERITIES = {Severity.DANGER: Colour.RED, Severity.WARNING: Colour.YELLOW}
_BACKFILL_COLUMNS = (
    *(Column("from"), Column("to", " to ")),
    *(Column("runs", padded=False), Column("order", padded=False)),
)
_RULES = Column("severity"), Column("rule"), Column("message", padded=False)
_END_COLOURS = {
    **dict.fromkeys((BackfillState.COMPLETED, BackfillState.EMPTY), Colour.GREEN),
    **dict.fromkeys((BackfillState.PARTLY, BackfillState.FAILED), Colour.RED),
    BackfillState.UNKNOWN: Colour.BOLD_RED,
    BackfillState.SKIPPED: Colour.YELLOW,
}


def runs_document(report: RunReport, options: RenderOptions) -> Document:
    """Return a table of runs, the newest first, or every field of one run.

    Of several exports, a column says of which one each run is.
    """
    one = report.exports[0] if len(report.exports) == 1 else None
    runs: Facts | Table | Lines = Lines(("no runs",))
    if report.detail:
        runs = Facts(tuple(_detail(report.runs[0])))
    elif report.runs:
        names = {} if one is not None else {item.address: item for item in report.exports}
        columns = (*((Column("export"),) if names else ()), *_RUN_COLUMNS)
        settled = report.settled
        rows = tuple(
            _run_row(run, settled, (_name_of(names[run.address]),) if names else ())
            for run in report.runs
        )
        optional = tuple(place + bool(names) for place in _LEAST_FIRST)
        runs = Table(columns, rows, indent=2, optional=optional, noun="run")
    remarks = Lines(tuple(_remarks(report)), attached=True)
    if one is None:
        where: Line = (Cell(f"{several(len(report.exports), 'export')} · {report.environment}"),)
    else:
        where = subject_line(one)
    after = page_of(one, options) if one is not None else ()
    return Document((Cell("Runs of"), *where), where, (runs, remarks), after=after)


def _name_of(subject: Subject) -> Cell:
    label, address = label_of(subject.address, subject.name), subject.address
    return Cell(label, code=not address.is_unmanaged, link=subject.page)


def page_of(subject: Subject, options: RenderOptions) -> tuple[str, ...]:
    """Return the address of the page of an object, if it is wanted and known."""
    return (subject.page,) if options.links and subject.page is not None else ()


def subject_line(subject: Subject) -> Line:
    """Return the address and the name of an object, and where it is."""
    parent = f"in {subject.parent_name} " if subject.parent_name else ""
    where = Cell(f"{parent}· {subject.environment}")
    return *name_line(subject.address, subject.name), where


def name_line(address: Address, name: str) -> Line:
    """Return the address and the name of an object, or the name of what no resource claims."""
    shown = Cell(named(name))
    if address.is_unmanaged:
        return (replace(shown, colour=Colour.BOLD),)
    return Cell(str(address), Colour.BOLD, code=True), shown


def interval(run: Run) -> str:
    """Return the interval of a run in UTC: the end without a date on the same day."""
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
    ended = _exact(run.finished_at)
    if run.finished_at is None and run.status in NO_END:
        ended = "when it began"
    elif run.finished_at is None and run.pending:
        ended = "not yet"
    texts = {
        "interval": _zoned(interval(run)),
        "began": _exact(run.created_at),
        "ended": ended,
        "took": _took(run),
        "rows": "-" if run.records is None else f"{run.records:,}",
        "bytes": "-" if run.bytes is None else f"{run.bytes:,}",
        "backfill": run.backfill or "-",
    }
    yield from ((name, Cell(text)) for name, text in texts.items())
    if run.error:
        yield "error", Cell(run.error)


def _run_row(run: Run, settled: Container[str], name: Line) -> Row:
    cells = (
        *name,
        Cell(interval(run)),
        Cell(run.status, _colour(run)),
        Cell("backfill" if run.backfill else ""),
        Cell(clock(run.created_at)),
        Cell(_took(run)),
        Cell(_rows(run)),
        Cell(run.id, code=True),
    )
    return Row(cells, notes=tuple(_notes(run, settled)))


def _notes(run: Run, settled: Container[str]) -> Iterator[str]:
    if run.error:
        yield shortened(" ".join(run.error.split()))
    if run.status == BILLING:
        yield _BILLING
    if run.id in settled:
        yield _SETTLED


def _remarks(report: RunReport) -> Iterator[str]:
    for item in report.unread:
        yield f"error: the runs of {item.address} cannot be read: {item.error}"
    if report.more:
        yield f"the newest {several(len(report.runs), 'run')}; list more with --limit N or --all"
    if report.detail and report.runs[0].status == BILLING:
        yield f"note: {_BILLING}"


def _colour(run: Run) -> Colour | None:
    if run.completed:
        return Colour.GREEN
    if run.pending:
        return Colour.CYAN
    return Colour.RED if run.failed else Colour.YELLOW


def _took(run: Run) -> str:
    took = duration_of_run(run)
    return "-" if took is None else duration_as_text(took / timedelta(seconds=1))


def _rows(run: Run) -> str:
    return "-" if run.records is None else short_count(run.records)


def _exact(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _zoned(text: str) -> str:
    return text if text == "-" else f"{text} UTC"


def logs_document(report: LogReport, options: RenderOptions) -> Document:
    """Return the entries, the oldest first."""
    where = subject_line(report)
    if report.run is not None:
        where += (Cell(f"· run {_zoned(interval(report.run))}"),)
    entries = Table(_LOG_COLUMNS, tuple(map(_entry, report.entries)), headed=False, noun="line")
    remarks = tuple(f"note: {text}" for text in _log_remarks(report))
    blocks = (entries if report.entries else Lines(("no entries",)), Lines(remarks, attached=True))
    return Document((Cell("Log of"), *where), where, blocks, after=page_of(report, options))


def _entry(entry: LogEntry) -> Row:
    time = Cell(moment_as_option(entry.timestamp), Colour.DIM)
    return Row((time, Cell(entry.level, _LEVELS.get(entry.level)), Cell(entry.message)))


def _log_remarks(report: LogReport) -> Iterator[str]:
    if report.more:
        count = counted_nouns(len(report.entries), "entry", "entries")
        yield f"the newest {count}; list more with --limit N or --all"
    if report.matched is Matched.BY_TIME:
        yield _BY_TIME


def backfills_document(plan: BackfillPlan, _: RenderOptions) -> Document:
    """Return where it runs, the backfills of each object, what to know before, and the counts."""
    where = Cell(f"{plan.source.environment} · {plan.source.base_url}")
    rows = tuple(_backfill_row(item, of) for of in plan.objects for item in of.backfills)
    rules = _common(plan, lambda of: of.consequences)
    notes = [note + of_some for note, of_some in _common(plan, lambda of: of.notes)]
    return Document(
        (Cell(f"Backfills of {plan.source.environment}"),),
        (),
        (
            Facts((("Environment", where), ("Plan", Cell(plan.plan_id[:8]))), indent=0),
            Table(_BACKFILL_COLUMNS, rows, headed=False, indent=2, noun="backfill"),
            Table(_RULES, tuple(starmap(_consequence, rules)), headed=False, indent=2, wraps=True),
        ),
        f"Plan: {counts(plan)}." if plan.backfills else "Nothing to backfill.",
        (
            *(("Runs of an export follow one another.",) if plan.backfills else ()),
            *(f"note: {note}" for note in (*plan.notes, *notes)),
        ),
    )


def _common(
    plan: BackfillPlan, parts: Callable[[ObjectBackfills], Iterable[_T]]
) -> list[tuple[_T, str]]:
    """Return each part of some objects once, and ` (…)` with these objects unless it is of all."""
    users: dict[_T, list[str]] = {}
    for item in plan.objects:
        for part in parts(item):
            users.setdefault(part, []).append(label_of(item.address, item.name))
    every = len(plan.objects)
    return [
        (part, "" if len(names) == every else f" ({listed(names, _MOST_LISTED)})")
        for part, names in users.items()
    ]


def _backfill_row(item: PlannedBackfill, of: ObjectBackfills) -> Row:
    order = "tried first" if item.trial else ""
    cells = (*_ends(item), several(item.runs, "run"), order)
    group = Group(name_line(of.address, of.name), f"  {of.parent_name}" if of.parent_name else "")
    return Row(tuple(map(Cell, cells)), "↻", group=group)


def _consequence(item: Consequence, of_some: str) -> Row:
    severity = Cell(item.severity.value, _SEVERITIES.get(item.severity))
    return Row((severity, Cell(item.rule, code=True), Cell(item.message + of_some)))


def ends_as_text(ended: Sequence[ObjectBackfills], options: RenderOptions, environment: str) -> str:
    """Return a line for every backfill that was to be started, and how to go on."""
    command = partial(command_text, environment=environment, more=options.again)
    lines: list[str] = []
    for item in ended:
        name = " ".join(printable(cell.text) for cell in name_line(item.address, item.name))
        lines += ["", name]
        for end in item.ends:
            lines += _end_lines(end, options.style)
            if end.state is BackfillState.SKIPPED:
                first, last = _ends(end.planned)
                again = command("backfill", item.address, "--from", first, "--to", last)
                lines += ["    start it later:", f"      {again}"]
    states = {end.state for item in ended for end in item.ends}
    if not states.isdisjoint({BackfillState.STARTED, BackfillState.RUNNING}):
        one = [ended[0].address] if len(ended) == 1 else []
        lines += ["", "Show the runs, and what is missing then:"]
        lines += [f"  {command('runs' if one else 'status', *one)}", f"  {command('gaps', *one)}"]
    return "".join(f"{line}\n" for line in lines)


def running_as_text(address: Address, name: str, rows: Iterable[BackfillRow]) -> str:
    """Return a line for every backfill that is to be cancelled."""
    lines = [" ".join(printable(cell.text) for cell in name_line(address, name))]
    for row in rows:
        first, last = (moment_as_option(it) if it else "-" for it in (row.start, row.end))
        ended = f"{row.finished_runs or 0} of {row.total_runs or '?'} runs ended"
        lines.append(f"  cancel {first} to {last}  {ended} (backfill {printable(row.id)})")
    return "".join(f"{line}\n" for line in lines)


def _end_lines(end: BackfillEnd, style: Style) -> list[str]:
    state = style.paint(_END_COLOURS.get(end.state), f"{end.state.value:<9}")
    name = f" (backfill {printable(end.id)})" if end.id is not None else ""
    lines = [
        f"  {state} {' to '.join(_ends(end.planned))}  {several(end.planned.runs, 'run')}{name}"
    ]
    lines += style.wrapped(printable(end.detail), "    ", "    ") if end.detail else []
    return [*lines, f"    hint: {printable(end.hint)}"] if end.hint else lines


def counts(plan: BackfillPlan) -> str:
    """Return the numbers of backfills, objects, runs and rows."""
    objects = [item for item in plan.objects if item.backfills]
    of = f" of {several(len(objects), 'export')}" if len(objects) > 1 else ""
    count = sum((item.rows or 0) * item.runs for item in objects)
    rows = f", about {short_count(count)} rows" if count else ""
    return f"{several(len(plan.backfills), 'backfill')}{of}, {several(plan.runs, 'run')}{rows}"


def _ends(item: PlannedBackfill) -> tuple[str, str]:
    return moment_as_option(item.start), moment_as_option(item.end)
