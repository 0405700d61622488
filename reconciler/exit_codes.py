"""Exit codes of the command line: what each command ends with. docs/troubleshooting.md lists them.

An error has its code in errors.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    FINE = 0
    ERROR = 1
    CHANGES = 2
    PARTLY_APPLIED = 3
    STALE = 4
    REFUSED = 5
    USAGE = 64
    INTERRUPTED = 130

    def after(self, *, sent: bool) -> ExitCode:
        """Return the code of a failure: after changes were sent it is 3, unless interrupted."""
        kept = not sent or self in (ExitCode.FINE, ExitCode.INTERRUPTED)
        return self if kept else ExitCode.PARTLY_APPLIED


_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.ERROR,
    ExitCode.USAGE,
    ExitCode.PARTLY_APPLIED,
    ExitCode.STALE,
    ExitCode.REFUSED,
    ExitCode.CHANGES,
    ExitCode.FINE,
)


def worst_of(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the most important of several exit codes."""
    return min(codes, key=_WORST_FIRST.index, default=ExitCode.FINE)


def code_of_plan(*, refused: bool, changes: bool) -> ExitCode:
    """Return the code of `plan`. `changes` are those that `--detailed-exitcode` asks for."""
    if refused:
        return ExitCode.REFUSED
    return ExitCode.CHANGES if changes else ExitCode.FINE


def code_of_apply(
    *, interrupted: bool, complete: bool, verified: bool = True, recorded: bool = True
) -> ExitCode:
    """Return the code of an `apply` that sent changes, and of a `backfill` that started runs.

    complete
        Whether every change was made.
    verified
        Whether the plan after it changes nothing that it changed.
    recorded
        Whether the inventory was written.
    """
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.FINE if complete and verified and recorded else ExitCode.PARTLY_APPLIED
