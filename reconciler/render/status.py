"""States of exports as text: a line for each that needs attention, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from reconciler.model.run import Run
from reconciler.model.status import ExportStatus, State, StatusReport, rough_duration
from reconciler.model.wording import listed, printable, several, shortened
from reconciler.render.counts import short_count
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style, aligned, width_of

SIGNS = {
    State.FAILING: "✗",
    State.LAGGING: "▲",
    State.PAUSED: "‖",
    State.NEVER_RUN: "○",
    State.UNKNOWN: "?",
    State.ENDED: "■",
    State.OK: "✓",
}
_COLOURS = {
    State.FAILING: Colour.RED,
    State.LAGGING: Colour.YELLOW,
    State.PAUSED: Colour.CYAN,
    State.NEVER_RUN: Colour.DIM,
    State.UNKNOWN: Colour.MAGENTA,
    State.ENDED: Colour.DIM,
    State.OK: Colour.GREEN,
}
_LEVELS = "▁▂▃▄▅▆▇█"
_FAILED, _OTHER = "×", "·"
_ASCII = str.maketrans(
    f"{''.join(SIGNS.values())}{_LEVELS}{_FAILED}{_OTHER}…≥", "x^=o?#+_.:-=+*#x.~>"
)
_LONGEST_NOTE = 120
_LONGEST_NAME = 48
_MOST_MISSING = 5
_HEADINGS = ("", "", "last run", "state", "lag", "rows/day", "latest runs")
_NOTE = "note"
_SKEW = timedelta(minutes=5)
"""How far the clock of the service may be ahead of this machine without a word."""
_LEAST_FIRST = (6, 1, 5)
"""The columns that a narrow terminal does not show: rows of runs, parent, rows a day."""


def as_ascii(text: str) -> str:
    """Return text whose signs and bars are ASCII, for terminals without them."""
    return text.translate(_ASCII)


def status_as_text(report: StatusReport, options: RenderOptions = DEFAULTS) -> str:
    """Return a table, the exports that are fine as one line unless verbose, and the counts."""
    style = options.style
    shown = [export for export in report.exports if options.verbose or export.state is not State.OK]
    fine = () if options.verbose else report.of(State.OK)
    lines = [printable(f"Environment {where(report)}"), ""]
    lines += _table(shown, report.at, style, links=options.links)
    lines += [_fine_line(fine, report.at, style)] if fine else []
    lines += [] if report.exports else ["No batch exports."]
    if report.missing:
        lines += ["", printable(f"Not created yet: {listed(report.missing, _MOST_MISSING)}")]
    return "".join(f"{line}\n" for line in [*lines, "", counts(report)])


def where(report: StatusReport) -> str:
    """Return the environment, where it is, and when its state was read."""
    moment = report.at.strftime("%Y-%m-%d %H:%M UTC")
    return f"{report.environment} · {report.base_url} · {moment}"


def counts(report: StatusReport) -> str:
    """Return `9 exports: 1 failing, 2 paused, 6 ok; 2 unmanaged.`."""
    states = [
        f"{len(report.of(state)):,} {state.replace('-', ' ')}"
        for state in State
        if report.of(state)
    ]
    unmanaged = sum(1 for export in report.exports if not export.managed)
    differing = sum(1 for export in report.exports if export.differs)
    text = several(len(report.exports), "export")
    text += f": {', '.join(states)}" if states else ""
    text += f"; {unmanaged:,} unmanaged" if unmanaged else ""
    text += f"; {differing:,} differing from the configuration" if differing else ""
    return f"{text}."


def last_run(export: ExportStatus, at: datetime) -> str:
    """Return when the last run ended, or began, or since when the export is paused."""
    if export.paused_since is not None:
        return f"paused {rough_duration(at - export.paused_since)}"
    run = export.last_run
    moment = moment_of(run) if run is not None else None
    if moment is None:
        return "never" if run is None else "-"
    clock = "%H:%M" if (at - moment).days < 1 else "%Y-%m-%d"
    if moment - at > _SKEW:
        return f"{moment.strftime('%H:%M')} (in {rough_duration(moment - at)}: check the clock)"
    return f"{moment.strftime(clock)} ({rough_duration(max(at - moment, timedelta()))} ago)"


def _is_early(export: ExportStatus, at: datetime) -> bool:
    """Return whether the last run is ahead of the clock of this machine."""
    moment = moment_of(export.last_run) if export.last_run is not None else None
    return moment is not None and moment - at > _SKEW


def moment_of(run: Run) -> datetime | None:
    """Return when a run ended, or else when it began."""
    return run.finished_at or run.created_at or run.end


def status_word(export: ExportStatus) -> str:
    """Return the status of the last run, with the number of failures in a row: `Failed ×6`."""
    run = export.last_run
    if run is None:
        return "-"
    more = "+" if export.all_failed else ""
    count = f" ×{export.failures}{more}" if export.failures > 1 else ""
    return f"{printable(run.status)}{count if run.failed else ''}"


def lag(export: ExportStatus) -> str:
    """Return the lag, `≥` before one that may be longer."""
    if export.lag is None:
        return "-"
    return f"{'≥ ' if export.lag_is_least else ''}{rough_duration(export.lag)}"


def rows_a_day(export: ExportStatus) -> str:
    """Return the rows a day with at most four digits: 950, 28.1 M."""
    return "-" if export.rows_a_day is None else short_count(round(export.rows_a_day))


def sparkline(runs: Sequence[Run]) -> str:
    """Return a bar for the rows of each run, the oldest first; `×` failed, `·` has none."""
    most = max((run.records or 0 for run in runs if run.completed), default=0)
    return "".join(_bar(run, most) for run in reversed(runs))


def _bar(run: Run, most: int) -> str:
    if run.failed:
        return _FAILED
    if not run.completed or run.records is None:
        return _OTHER
    return _LEVELS[round((len(_LEVELS) - 1) * run.records / most) if most else 0]


def remarks(export: ExportStatus) -> str:
    """Return the notes on one line, and that it is unmanaged."""
    texts = [shortened(" ".join(note.message.split()), _LONGEST_NOTE) for note in export.notes]
    if not export.managed:
        texts.append("unmanaged")
    return "; ".join(map(printable, texts))


def label(export: ExportStatus) -> str:
    """Return the address, and the name where no resource has a key for it."""
    name = str(export.address) if export.managed else f'"{export.name}"'
    return shortened(printable(name), _LONGEST_NAME)


def _table(
    exports: Sequence[ExportStatus], at: datetime, style: Style, *, links: bool
) -> Iterator[str]:
    if not exports:
        return
    rows = [_HEADINGS, *(_cells(export, at) for export in exports)]
    columns = _columns(rows, style.width)
    lines = _lines(rows, columns)
    yield style.paint(Colour.DIM, f"  {next(lines)}  {_NOTE}")
    for export, line in zip(exports, lines, strict=True):
        sign = style.paint(_COLOURS[export.state], SIGNS[export.state])
        note = remarks(export)
        if width_of(f"  {line}  {note}") <= style.width:
            yield f"{sign} {line}  {note}".rstrip()
        else:
            # Below its line, where it can be read whole.
            yield f"{sign} {line}".rstrip()
            yield from style.wrapped(note, "      ", "      ")
        if links and export.page is not None:
            yield f"      {printable(export.page)}"


def _cells(export: ExportStatus, at: datetime) -> tuple[str, ...]:
    return (
        label(export),
        shortened(printable(export.parent_name or ""), _LONGEST_NAME),
        last_run(export, at),
        status_word(export),
        lag(export),
        rows_a_day(export),
        sparkline(export.runs),
    )


def _columns(rows: Sequence[Sequence[str]], width: int) -> Mapping[int, int]:
    """Return the columns that fit, and their widths. Those that say least are left out first."""
    columns = {
        position: max(map(width_of, cells))
        for position, cells in enumerate(zip(*rows, strict=True))
    }
    for position in _LEAST_FIRST:
        if 2 + sum(columns.values()) + 2 * len(columns) + len(_NOTE) <= width:
            break
        del columns[position]
    return columns


def _lines(rows: Sequence[Sequence[str]], columns: Mapping[int, int]) -> Iterator[str]:
    for row in rows:
        yield aligned((row[position] for position in columns), columns.values())


def _fine_line(exports: Sequence[ExportStatus], at: datetime, style: Style) -> str:
    unsettled = sum(1 for export in exports if export.unsettled)
    text = f"{len(exports):,} {'export is' if len(exports) == 1 else 'exports are'} ok"
    if unsettled:
        text += f", {unsettled:,} with failed runs that were not repeated"
    if early := sum(1 for export in exports if _is_early(export, at)):
        text += f", {early:,} with a run after the time of this machine: check the clock"
    return f"{style.paint(Colour.GREEN, SIGNS[State.OK])} {text} (list: --all)"
