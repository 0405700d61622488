"""The report of `status`: the state of live objects that run on a schedule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from reconciler.diagnostics import OfEnvironment
from reconciler.model.public import Count, Public, Term, derived
from reconciler.model.run import Run, duration_of_run
from reconciler.model.text import (
    command_text,
    duration_as_text,
    listed,
    printable,
    several,
    short_count,
    shortened,
)
from reconciler.model.times import rough_duration
from reconciler.model.values import Address
from reconciler.render.document import (
    Bar,
    Cell,
    Column,
    Document,
    Facts,
    Lines,
    Row,
    Table,
    label_of,
    reports_document,
)
from reconciler.render.options import Colour, RenderOptions


class State(Term):
    """The state of an export, the worst first."""

    FAILING = "failing", "Its last runs failed, and the service may have paused it for that."
    PAUSED_UNKNOWN = (
        "paused-unknown",
        "It is paused after a failed run: whether the service paused it is unknown.",
    )
    LAGGING = "lagging", "An interval whose run is due is not exported."
    PAUSED = "paused", "It is paused on purpose, so it does not run."
    NEVER_RUN = "never-run", "It has not run, and no run is due."
    UNKNOWN = "unknown", "Its schedule or its runs cannot be read."
    ENDED = "ended", "Its end has passed."
    OK = "ok", "Every interval whose run is due is exported, or its run is in progress."


class StatusNote(Public, frozen=True):
    """A remark about an export."""

    code: str
    """Stable id of the remark."""
    message: str
    """Message."""


class ExportStatus(Public, frozen=True):
    """The state of an export."""

    internal = frozenset({"lag", "cause"})

    address: Address
    name: str
    """Its live name."""
    parent_name: str | None
    """Live name of its parent, its id if the name is unknown."""
    managed: bool
    """Whether a resource of the configuration claims it."""
    state: State
    interval: str
    """Its interval."""
    runs: tuple[Run, ...] = ()
    """The latest runs, the newest first."""
    failures: Count = 0
    """Runs in a row that failed and whose intervals are not exported."""
    all_failed: bool = False
    """Whether there may be more failures than the service shows."""
    unsettled: Count = 0
    """Latest runs that failed and whose intervals no other of them exported."""
    lag: timedelta | None = None
    lag_is_least: bool = False
    """Whether the lag may be longer."""
    rows_a_day: float | None = None
    """Rows a day, from the median of the completed runs, null without one."""
    next_run: datetime | None = None
    """The next tick of its schedule, ISO 8601, null without one."""
    paused_since: datetime | None = None
    """When its pause began, null if it is not paused, or if that is unknown."""
    paused_by_service: bool = False
    """Whether the service paused it after failures, by its runs and the time of the pause."""
    missed: Count | None = None
    """Runs that its pause has skipped, null if it is not paused, or if that is unknown."""
    notes: tuple[StatusNote, ...] = ()
    """What a reader should know, the most important first."""
    cause: str | None = None
    """Why its last run failed, as the service says it. It is the end of a note."""
    differs: bool | None = None
    """Whether it differs from the configuration, null if it is unmanaged or cannot be compared."""
    page: str | None = None
    """Address of its page on the service, null if unknown."""

    @derived
    def lag_seconds(self) -> float | None:
        """How long the first interval that is not exported is over, null if none is due."""
        return None if self.lag is None else self.lag.total_seconds()

    def is_any_of(self, states: Collection[State]) -> bool:
        """Return whether its state is one of some, as `--fail-on` takes them.

        A pause of unknown cause counts as failing while the newest run that ended failed.
        """
        fails = self.state is State.PAUSED_UNKNOWN and self.failures > 0
        return self.state in states or (fails and State.FAILING in states)

    def has(self, code: str) -> bool:
        """Return whether it has a remark."""
        return any(note.code == code for note in self.notes)

    @property
    def last_run(self) -> Run | None:
        """The newest run, None without one."""
        return self.runs[0] if self.runs else None


class StatusReport(Public, frozen=True):
    """The states of exports, as `status --format json` prints them."""

    schema = "status"
    version = 1

    environment: str
    """Name of the environment."""
    base_url: str
    """Address of the service."""
    organization: str
    """Id of the organization."""
    at: datetime
    """When live state was read, ISO 8601."""
    exports: tuple[ExportStatus, ...]
    """The exports, the worst first."""
    missing: tuple[Address, ...] = ()
    """Resources that do not exist yet."""

    @derived
    def counts(self) -> dict[State, Count]:
        """The number of exports by state."""
        return {state: len(self.of(state)) for state in State}

    def of(self, state: State) -> tuple[ExportStatus, ...]:
        """Return the exports in a state."""
        return tuple(export for export in self.exports if export.state is state)


_SIGNS = {
    State.FAILING: ("✗", Colour.RED),
    State.LAGGING: ("▲", Colour.YELLOW),
    State.PAUSED_UNKNOWN: ("‖", Colour.YELLOW),
    State.PAUSED: ("‖", Colour.CYAN),
    State.NEVER_RUN: ("○", Colour.DIM),
    State.UNKNOWN: ("?", Colour.MAGENTA),
    State.ENDED: ("■", Colour.DIM),
    State.OK: ("✓", Colour.GREEN),
}
_IN_WORDS = {State.PAUSED_UNKNOWN: "paused (cause unknown)", State.NEVER_RUN: "never run"}
_LEVELS = "▁▂▃▄▅▆▇█"
_LONGEST_NOTE = 120
_LONGEST_CAUSE = 300
_LONGEST_NAME = 48
_MOST_NAMED = 10
_MOST_MISSING = 5
_VARIABLE = re.compile(r"\b[0-9a-f]{8,}\b|[0-9]+", re.IGNORECASE)
"""What differs between errors of one cause: numbers, and parts of ids."""
_TITLES = (
    *("export", "in", "last run (UTC)", "state", "lag", "rows/day"),
    *("next run (UTC)", "latest runs"),
)
_COLUMNS = tuple(Column(title, page_only=title.startswith("next run")) for title in _TITLES)
_MOST_BARS = 10
_LEAST_FIRST = (7, 1, 5)
"""The columns that a narrow terminal does not show: latest runs, parent, rows a day."""


def status_document(report: StatusReport, options: RenderOptions) -> Document:
    """Return a table, the exports that are fine as one line unless verbose, and the counts.

    What several exports fail with is below the table, once.
    """
    fine = () if options.verbose else report.of(State.OK)
    shown = [export for export in report.exports if options.verbose or export.state is not State.OK]
    below = [_fine_line(fine)] if fine else []
    below += [] if report.exports else ["No batch exports."]
    missing = f"Not created yet: {listed(report.missing, _MOST_MISSING)}"
    names = Counter(map(_label, report.exports))
    labels = {
        export.address: f"{name} in {export.parent_name}"
        if names[name := _label(export)] > 1 and export.parent_name
        else name
        for export in shown
    }
    common = _with_one_cause(shown)
    together = {export.address for exports in common for export in exports}
    rows = tuple(
        _row(export, labels[export.address], report.at, brief=export.address in together)
        for export in shown
    )
    facts = tuple(
        (several(len(exports), "export"), Cell(_cause_of(exports, labels))) for exports in common
    )
    incomplete = any(export.failures or export.has("missed-runs") for export in shown)
    command = command_text("gaps", environment=report.environment, more=options.again)
    where = f"{report.environment} · {report.base_url} · {report.at:%Y-%m-%d %H:%M UTC}"
    return Document(
        (Cell(f"Exports of {report.environment}"),),
        (Cell(f"Environment {where}"),),
        (
            Table(_COLUMNS, rows, beside=True, below=6, optional=_LEAST_FIRST, noun="export"),
            Lines(tuple(below), attached=bool(rows)),
            Facts(facts),
            Lines((missing,) if report.missing else ()),
        ),
        _counts(report),
        ("hint: list what is missing:", f"  {command}") if incomplete else (),
    )


def _with_one_cause(exports: Iterable[ExportStatus]) -> list[list[ExportStatus]]:
    """Return the exports that fail alike, but for numbers and ids in the error."""
    by_cause: dict[str, list[ExportStatus]] = {}
    for export in exports:
        if export.cause:
            by_cause.setdefault(_VARIABLE.sub("#", export.cause), []).append(export)
    return [alike for alike in by_cause.values() if len(alike) > 1]


def _cause_of(exports: Sequence[ExportStatus], labels: Mapping[Address, str]) -> str:
    names = listed([labels[export.address] for export in exports], _MOST_NAMED)
    return f"{shortened(' '.join((exports[0].cause or '').split()), _LONGEST_CAUSE)} ({names})"


def _row(export: ExportStatus, name: str, at: datetime, *, brief: bool) -> Row:
    lag = "-" if export.lag is None else rough_duration(export.lag)
    rows = "-" if export.rows_a_day is None else short_count(round(export.rows_a_day))
    cells = (
        Cell(name, code=export.managed, link=export.page),
        Cell(shortened(export.parent_name or "", _LONGEST_NAME)),
        Cell(_last_run(export, at)),
        Cell(_status_word(export)),
        Cell(f"≥ {lag}" if export.lag_is_least else lag),
        Cell(rows),
        Cell("-" if export.next_run is None else f"{export.next_run:%m-%d %H:%M}"),
        Cell(sparkline(export.runs), strip=tuple(_strip(export.runs[:_MOST_BARS]))),
    )
    return Row(
        cells,
        *_SIGNS[export.state],
        notes=(_remarks(export, brief=brief),),
        state=export.state.value,
        parent=export.parent_name or "",
    )


def _counts(report: StatusReport) -> str:
    """Return `9 exports: 1 failing, 2 paused, 6 ok; 2 unmanaged.`."""
    counts = [(count, state) for state, count in report.counts.items() if count]
    states = [f"{count:,} {_IN_WORDS.get(state, state)}" for count, state in counts]
    unmanaged = sum(not export.managed for export in report.exports)
    differing = sum(export.differs is True for export in report.exports)
    text = several(len(report.exports), "export")
    text += f": {', '.join(states)}" if states else ""
    text += f"; {unmanaged:,} unmanaged (in quotes)" if unmanaged else ""
    text += f"; {differing:,} differing from the configuration" if differing else ""
    return f"{text}."


def _last_run(export: ExportStatus, at: datetime) -> str:
    """Return when the last run ended, or began, or since when the export is paused."""
    if export.paused_since is not None:
        return f"paused since {_clock(export.paused_since, at)}"
    run = export.last_run
    moment = (run.finished_at or run.created_at or run.end) if run is not None else None
    if moment is None:
        return "never" if run is None else "-"
    return f"{_clock(moment, at)} ({rough_duration(max(at - moment, timedelta()))} ago)"


def _clock(moment: datetime, at: datetime) -> str:
    """Return the time of day in UTC, or the date if that is a day ago."""
    return moment.strftime("%H:%M" if (at - moment).days < 1 else "%Y-%m-%d")


def _status_word(export: ExportStatus) -> str:
    """Return the status of the last run, with the number of failures in a row: `Failed ×6`."""
    run = export.last_run
    if run is None:
        return "-"
    more = "+" if export.all_failed else ""
    count = f" ×{export.failures}{more}" if export.failures > 1 else ""
    return f"{printable(run.status)}{count if run.failed else ''}"


def sparkline(runs: Sequence[Run]) -> str:
    """Return a bar for the rows of each run, the oldest first; `×` failed, `·` has none."""
    most = max((run.records or 0 for run in runs if run.completed), default=0)
    return "".join(_bar(run, most) for run in reversed(runs))


def _bar(run: Run, most: int) -> str:
    if run.failed:
        return "×"
    if not run.completed or run.records is None:
        return "·"
    return _LEVELS[round((len(_LEVELS) - 1) * run.records / most) if most else 0]


def _remarks(export: ExportStatus, *, brief: bool = False) -> str:
    """Return the notes on one line. A `brief` one leaves out the cause of a failure."""
    messages = [note.message for note in export.notes]
    if brief and export.cause:
        messages = [text.removesuffix(export.cause).rstrip(": ") for text in messages]
    texts = [shortened(" ".join(text.split()), _LONGEST_NOTE) for text in messages if text]
    return "; ".join(map(printable, texts))


def _label(export: ExportStatus) -> str:
    return printable(label_of(export.address, export.name))


def _fine_line(exports: Sequence[ExportStatus]) -> str:
    unsettled = sum(export.unsettled > 0 for export in exports)
    text = f"{len(exports):,} {'export is' if len(exports) == 1 else 'exports are'} ok"
    text += f", {unsettled:,} with failed runs that were not repeated" if unsettled else ""
    return f"{_SIGNS[State.OK][0]} {text} (list: --all)"


def _strip(runs: Sequence[Run]) -> Iterator[Bar]:
    for run in reversed(runs):
        kind = "bad" if run.failed else "good" if run.completed else "open"
        yield Bar(run.records if run.completed else None, kind, _tooltip(run))


def _tooltip(run: Run) -> str:
    end = f"{run.end:%m-%d %H:%M} UTC" if run.end is not None else "unknown interval"
    rows = f"{short_count(run.records)} rows" if run.completed and run.records is not None else ""
    took = duration_of_run(run)
    took_text = "" if took is None else duration_as_text(took.total_seconds())
    parts = (end, run.status, rows, took_text, run.error or "")
    return " · ".join(" ".join(part.split()) for part in parts if part)


def statuses_document(
    reports: Sequence[OfEnvironment[StatusReport]], options: RenderOptions
) -> Document:
    """Return the states of the exports of every environment."""
    return reports_document("Exports", reports, lambda report: status_document(report, options))
