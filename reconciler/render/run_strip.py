"""The latest runs of an export as a strip of blocks, as SVG inside HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reconciler.model.change import RecentRun
from reconciler.model.run import FAILED
from reconciler.model.run_status import COMPLETED
from reconciler.model.text import printable, several, shortened
from reconciler.render.page import text

_STEP, _WIDTH, _HEIGHT = 9, 7, 14
_LONGEST = 40
_HEIGHTS = {"good": _HEIGHT, "bad": _HEIGHT // 2, "open": 3}
"""Heights differ, since not every reader can distinguish the colours."""

STYLE = """
.runs{grid-column:2/-1;display:flex;flex-wrap:wrap;gap:0 .6rem;align-items:center;color:var(--dim)}
.strip{flex:none}
.strip .good{fill:var(--green)}
.strip .bad{fill:var(--red)}
.strip .open{fill:var(--blue)}
"""


def run_strip(runs: Sequence[RecentRun]) -> str:
    """Return a block for every run, the oldest at the left, and their counts; "" without runs."""
    if not runs:
        return ""
    blocks = "".join(_block(run, place) for place, run in enumerate(reversed(runs)))
    width = _STEP * len(runs)
    counts = Counter(_status(run) for run in runs)
    label = ", ".join(f"{count} {status}" for status, count in counts.items())
    label = f"{several(len(runs), 'latest run')}, the oldest first: {label}"
    caption = f"last run {_status(runs[0])}{_time(runs[0])}"
    failed = sum(run.status in FAILED for run in runs)
    caption += f" · {failed} of {len(runs)} failed" if failed else ""
    return (
        f'<span class="runs"><svg class="strip" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="{text(label)}">{blocks}</svg>'
        f"<span>{text(caption)}</span></span>"
    )


def _block(run: RecentRun, place: int) -> str:
    css = "bad" if run.status in FAILED else "good" if run.status == COMPLETED else "open"
    height = _HEIGHTS[css]
    path = f"M{place * _STEP} {_HEIGHT}v-{height}h{_WIDTH}v{height}z"
    title = text(f"{_status(run)}{_time(run)}")
    return f'<path class="{css}" d="{path}"><title>{title}</title></path>'


def _status(run: RecentRun) -> str:
    return shortened(printable(run.status), _LONGEST)


def _time(run: RecentRun) -> str:
    """Return ` 2026-06-01 10:00 UTC`, "" for an unknown time. A saved plan may contain any text."""
    moment = shortened(printable(run.end), _LONGEST)
    return f" {moment[:16].replace('T', ' ')} UTC" if moment else ""
