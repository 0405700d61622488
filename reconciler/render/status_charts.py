"""Charts of the latest runs of an export, as SVG inside HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from html import escape

from msgspec import Struct

from reconciler.model.run import Run
from reconciler.model.status import ExportStatus, rough_duration
from reconciler.model.wording import printable
from reconciler.render.counts import short_count
from reconciler.render.durations import duration_as_text

_WIDTH, _HEIGHT = 300, 96
_TOP, _BOTTOM = 16, 80
_MOST_BARS = 10
_SPARK_WIDTH, _SPARK_HEIGHT = 80, 20


class _Bar(Struct, frozen=True):
    """A bar: its height, None for a run that has none, its class and its tooltip."""

    value: float | None
    css: str
    title: str


def spark(export: ExportStatus) -> str:
    """Return the rows of the latest runs as one small picture, the oldest at the left."""
    bars = [_Bar(_rows(run), _css(run), "") for run in reversed(export.runs[:_MOST_BARS])]
    most = max((bar.value or 0 for bar in bars), default=0)
    step = _SPARK_WIDTH / _MOST_BARS
    paths: dict[str, str] = {}
    for position, bar in enumerate(bars, start=_MOST_BARS - len(bars)):
        height = _height(bar, most, _SPARK_HEIGHT - 2)
        x, y = position * step + 1, _SPARK_HEIGHT - height
        path = f"M{x:g} {_SPARK_HEIGHT}V{y:g}h{step - 2:g}V{_SPARK_HEIGHT}z"
        paths[bar.css] = paths.get(bar.css, "") + path
    shapes = "".join(f'<path class="{css}" d="{path}"/>' for css, path in paths.items())
    label = f"{len(bars)} latest runs, {sum(bar.css == 'bad' for bar in bars)} failed"
    size = f'width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}"'
    box = f'viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"'
    return f'<svg class="spark" {size} {box} role="img" aria-label="{label}">{shapes}</svg>'


def charts(export: ExportStatus, at: datetime) -> str:
    """Return charts of the duration, the rows and the lag of the latest runs.

    The lag of an interval that is not exported lasts until now.
    """
    runs = tuple(reversed(export.runs))
    seconds = [_seconds(_ended(run, at), run.created_at) for run in runs]
    lags = [_seconds(run.finished_at if run.completed else at, run.end) for run in runs]
    return "".join(
        (
            _chart("Duration of runs", runs, seconds, duration_as_text),
            _chart("Rows", runs, [_rows(run) for run in runs], lambda rows: short_count(int(rows))),
            _chart("Lag: until the interval is exported", runs, lags, _rough),
        )
    )


def _rough(seconds: float) -> str:
    return rough_duration(timedelta(seconds=seconds))


def _ended(run: Run, at: datetime) -> datetime | None:
    return run.finished_at or (at if run.pending else None)


def _seconds(end: datetime | None, start: datetime | None) -> float | None:
    return (
        max(0.0, (end - start).total_seconds()) if end is not None and start is not None else None
    )


def _rows(run: Run) -> float | None:
    return run.records if run.completed else None


def _css(run: Run) -> str:
    if run.failed:
        return "bad"
    return "good" if run.completed else "open"


def _chart(
    title: str,
    runs: Sequence[Run],
    values: Sequence[float | None],
    text: Callable[[float], str],
) -> str:
    """Return a titled chart with a bar for each run, and the times of the first and the last."""
    bars = [
        _Bar(value, _css(run), _tooltip(run, "" if value is None else text(value)))
        for run, value in zip(runs, values, strict=True)
    ]
    most = max((bar.value or 0 for bar in bars), default=0)
    step = _WIDTH / max(len(bars), 1)
    shapes = []
    for position, bar in enumerate(bars):
        height = _height(bar, most, _BOTTOM - _TOP)
        place = f'x="{position * step + 2:.1f}" y="{_BOTTOM - height:.1f}"'
        size = f'width="{step - 4:.1f}" height="{height:.1f}"'
        tooltip = f"<title>{escape(bar.title)}</title>"
        shapes.append(f'<rect class="{bar.css}" {place} {size}>{tooltip}</rect>')
    ends = [run.end for run in runs if run.end is not None]
    first, last = (_time(ends[0]), _time(ends[-1])) if ends else ("", "")
    labels = (
        f'<text x="2" y="11">{escape(text(most))}</text>'
        f'<path class="axis" d="M0 {_BOTTOM}.5H{_WIDTH}"/>'
        f'<text x="2" y="{_HEIGHT - 4}">{first}</text>'
        f'<text x="{_WIDTH - 2}" y="{_HEIGHT - 4}" text-anchor="end">{last}</text>'
    )
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{labels}{''.join(shapes)}</svg>"
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{picture}</figure>"


def _height(bar: _Bar, most: float, space: float) -> float:
    """Return the height of a bar: one without a value is low, so that it is seen."""
    if bar.value is None or not most:
        return 3
    return round(max(2.0, space * bar.value / most), 1)


def _tooltip(run: Run, value: str) -> str:
    end = _time(run.end) if run.end is not None else "unknown interval"
    parts = (f"{end} UTC", run.status, value, run.error or "")
    return printable(" · ".join(" ".join(part.split()) for part in parts if part))


def _time(moment: datetime) -> str:
    return moment.strftime("%m-%d %H:%M")
