"""Records and logs of runs, for tests of what writes or reads them."""

from __future__ import annotations

from itertools import count

from reconciler.model.decoding import encode_line
from reconciler.model.event import Event, Record, RunInfo

RUN = RunInfo("run-1", "1.0", "ci-7", "root", "ada", "https://ci.example.com/jobs/1")
TIME = "2026-06-01T12:00:00+00:00"


def records(*events: Event, run: RunInfo = RUN) -> list[Record]:
    return [
        Record(run, number, TIME, event) for number, event in zip(count(1), events, strict=False)
    ]


def log_of(*events: Event, run: RunInfo = RUN) -> bytes:
    """Return the audit log of a run."""
    return b"".join(map(encode_line, records(*events, run=run)))
