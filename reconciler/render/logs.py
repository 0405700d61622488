"""Logs as text, JSON and Markdown. Their messages are untrusted text."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.run import LogEntry, LogLevel
from reconciler.model.run_report import LogReport, Matched
from reconciler.model.wording import printable
from reconciler.render.markup import code, inline
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.words import counted_nouns
from reconciler.render.runs import interval, subject_as_text
from reconciler.render.style import Colour, Style

_COLOURS: dict[str, Colour] = {
    LogLevel.ERROR: Colour.RED,
    LogLevel.WARNING: Colour.YELLOW,
    LogLevel.DEBUG: Colour.DIM,
}
_MATCHES = {
    Matched.BY_MESSAGE: "the service does not join logs to runs: these entries belong to the "
    "instance whose messages have the interval of the run",
    Matched.BY_TIME: "the service does not join logs to runs: these entries were logged while it "
    "ran, and some may be of other runs",
}


def logs_as_text(report: LogReport, options: RenderOptions = DEFAULTS) -> str:
    """Return the entries, the oldest first."""
    lines = [_title(report, options.style), ""]
    lines += [entry_as_text(entry, options.style).rstrip("\n") for entry in report.entries]
    lines += [] if report.entries else ["no entries"]
    lines += [f"note: {text}" for text in _remarks(report)]
    if options.links and report.page is not None:
        lines += ["", printable(report.page)]
    return "".join(f"{line}\n" for line in lines)


def logs_as_markdown(report: LogReport, options: RenderOptions = DEFAULTS) -> str:
    """Return a table with a row for each entry."""
    subject = report
    lines = [f"### Log of {code(str(subject.address))} {inline(subject.name)}", ""]
    if report.entries:
        lines += ["| time | level | message |", "|---|---|---|"]
        lines += [
            f"| {_time(entry)} | {inline(entry.level)} | {inline(entry.message)} |"
            for entry in report.entries
        ]
    else:
        lines.append("no entries")
    lines += [f"\n{inline(text)}" for text in _remarks(report)]
    if options.links and subject.page is not None:
        lines += ["", inline(subject.page)]
    return "".join(f"{line}\n" for line in lines)


def entry_as_text(entry: LogEntry, style: Style) -> str:
    """Return the line of an entry."""
    colour = _COLOURS.get(entry.level)
    level = style.paint(colour, f"{printable(entry.level):<7}")
    return f"{style.paint(Colour.DIM, _time(entry))} {level} {printable(entry.message)}\n"


def _title(report: LogReport, style: Style) -> str:
    title = subject_as_text(report, style)
    return title if report.run is None else f"{title} · run {interval(report.run)}"


def _remarks(report: LogReport) -> Iterator[str]:
    if report.more:
        count = counted_nouns(len(report.entries), "entry", "entries")
        yield f"the newest {count}; list more with --limit N or --all"
    if report.matched in _MATCHES:
        yield _MATCHES[report.matched]


def _time(entry: LogEntry) -> str:
    return f"{entry.timestamp:%Y-%m-%d %H:%M:%S}"
