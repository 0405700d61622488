"""How a change ends that is not done. Pure."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import Any

from reconciler.applying.change_run import ChangeRun
from reconciler.errors import AmbiguousOutcome, ReconcilerError, ServiceError, StalePlan
from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.event import Done, Failed, Result, Skipped
from reconciler.model.redaction import Mask

INTERRUPTED = "the run was interrupted"
_REFUSALS = (400, 401, 403, 409, 415, 422)
_REST = "plan again: the plan then does the rest of the replacement"


def failed(run: ChangeRun, error: ReconcilerError, mask: Mask) -> Failed:
    """Return the end of a change that failed. Errors may contain live values: masked."""
    hint = _REST if _is_half_replaced(run) else error.hint
    return Failed(
        run.change,
        mask(_with_parts(run, error.message)),
        mask(hint) if hint is not None else None,
        unknown=isinstance(error, AmbiguousOutcome),
        refused=isinstance(error, ServiceError) and error.status in _REFUSALS,
        stale=isinstance(error, StalePlan) and not run.made,
        **_created(run),
    )


def unknown_create(run: ChangeRun, message: str) -> Failed:
    """Return the end of a create of which no object was found."""
    hint = "plan again in some minutes: what exists by then is compared with the configuration"
    return Failed(run.change, message, hint, unknown=True)


def stopped(run: ChangeRun, because: str, hint: str | None = None) -> Failed | Skipped:
    """Return the end of a change that is not continued."""
    if not run.made:
        return Skipped(run.change, because)
    hint = _REST if hint is None and _is_half_replaced(run) else hint
    return Failed(
        run.change,
        _with_parts(run, because),
        hint,
        **_created(run),
    )


def deleted_with(change: Change, end: Result, because: str | None) -> Result:
    """Return the end of a deletion that another one makes, which ended: `because` if it failed."""
    if because is None:
        return Done(change, change.live_id, (f"deleted with {end.change.address}",))
    if isinstance(end, Failed) and end.unknown:
        return Failed(change, f"{because}; outcome unknown", end.hint, unknown=True)
    return Skipped(change, because)


def unexpected(run: ChangeRun, error: Exception) -> Failed:
    """Return the end of a change that failed by an error of this program."""
    return Failed(
        run.change,
        _with_parts(run, text_of_unexpected(error)),
        "this is an error of reconciler; please report it",
        unknown=run.writing,
        unexpected=True,
        **_created(run),
    )


def text_of_unexpected(error: Exception) -> str:
    """Return the type and the place of an error. Its text may contain values."""
    place = extract_tb(error.__traceback__)[-1]
    return f"unexpected {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


def _with_parts(run: ChangeRun, problem: str) -> str:
    """Return a message with what was done before, since the change is neither made nor not."""
    return f"{', '.join(run.made)}, not finished: {problem}" if run.made else problem


def _is_half_replaced(run: ChangeRun) -> bool:
    return run.change.action is Action.REPLACE and bool(run.made)


def _created(run: ChangeRun) -> dict[str, Any]:
    """Return what is known of the new object."""
    if run.creation is None:
        return {}
    is_found = run.adopted and not run.outcome_unknown
    return {"live_id": run.creation.live_id, "adopted": is_found, "stamp": run.stamp}
