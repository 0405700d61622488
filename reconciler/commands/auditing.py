"""The use case `audit`: read the runs of an audit log."""

from __future__ import annotations

from pathlib import Path

from reconciler.commands.files import read_file
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.codec.log import read_log
from reconciler.model.logged_run import Audit
from reconciler.model.text import listed

_LISTED = 10


def audit(file: Path, run: str | None = None) -> Audit:
    """Return the runs of an audit log, with the last one or one whose id begins with `run`.

    Raises:
        BadUsage: no run or several runs have such an id.
        InvalidPlanFile: a line of the file can't be read.
        ReconcilerError: the file can't be read, or is not an audit log.

    """
    runs = read_log(read_file(file), name=str(file))
    if not runs:
        raise ReconcilerError(
            f"{file} is not an audit log", hint="it is written by `reconciler apply --log-file`"
        )
    if run is None:
        return Audit(runs, runs[-1])
    matching = tuple(logged for logged in runs if logged.info.id.startswith(run))
    if len(matching) != 1:
        ids = [logged.info.id for logged in matching or runs]
        problem = "several runs begin with" if matching else "no run begins with"
        raise BadUsage(f"{problem} '{run}'", hint=f"runs: {listed(ids, _LISTED)}")
    return Audit(matching, matching[0])
