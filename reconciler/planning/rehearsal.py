"""Judge a rehearsal: what went wrong, and how end states differ. Pure."""

from __future__ import annotations

from typing import TypeAlias

from reconciler.model.event import Failed, Report, Skipped, Twins
from reconciler.model.rehearsal import Outcome, Problem
from reconciler.model.wording import listed, quoted
from reconciler.planning.copying import EndState

_End: TypeAlias = Failed | Skipped | Twins
_MOST_LISTED = 5


def problems_of(report: Report) -> tuple[Problem, ...]:
    """Return the changes that were not made, failed ones first."""
    ends: tuple[_End, ...] = (*report.failed, *report.twins, *report.skipped)
    return tuple(map(_problem, ends))


def different(expected: EndState, actual: EndState) -> str:
    """Return how an end state differs from the expected one, "" if it does not."""
    parts = []
    for word, objects in (("missing", expected - actual), ("extra", actual - expected)):
        if objects:
            names = [f"{kind} {quoted(name)}" for kind, _, name, _ in sorted(objects.elements())]
            parts.append(f"{word}: {listed(names, _MOST_LISTED)}")
    return "; ".join(parts)


def _problem(end: _End) -> Problem:
    change = end.change
    match end:
        case Failed():
            outcome, message, hint = _outcome(end), end.error, end.hint
        case Skipped():
            outcome, message, hint = Outcome.SKIPPED, end.because, None
        case Twins():
            outcome, message, hint = Outcome.UNKNOWN, end.because, end.hint
    return Problem(change.address, change.action, change.name, outcome, message, change.at, hint)


def _outcome(failed: Failed) -> Outcome:
    if failed.stale:
        return Outcome.INEXACT
    return Outcome.UNKNOWN if failed.unknown or failed.unexpected else Outcome.REFUSED
