"""The use cases `backfill --cancel` and `runs --cancel`: cancel what runs, and account for it."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.errors import BadUsage, Invalid, ReconcilerError
from reconciler.model.address import Address
from reconciler.model.live import id_text
from reconciler.model.run import BackfillRow
from reconciler.model.text import printable, quoted
from reconciler.operations.runs import ALL_TIME, opened, read_backfills, read_run
from reconciler.reading.calls import NotOffered, ObjectCalls

_CANCELLED = "Cancelled"


async def cancel(
    name: str,
    row_id: str | None,
    workspace: WorkspaceOptions,
    runtime: Runtime,
    begin: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Cancel a backfill of the object that a text names, or all that run; return their ids.

    `begin` is called before the first is cancelled. One that ended meanwhile is left out.

    Raises BadUsage, NotOffered, Interrupted, ServiceError.
    """
    async with opened(workspace, name, runtime, tab="backfills") as world:
        calls = world.calls
        if row_id is not None and id_text(row_id) is None:
            raise BadUsage(f"invalid id {quoted(row_id)}")
        ids = (row_id,) if row_id is not None else await _running(calls)
        begin()
        cancelled: list[str] = []
        for item in ids:
            try:
                if await _cancelled(calls, item, chosen=row_id is not None):
                    cancelled.append(item)
            except ReconcilerError as error:
                if not cancelled:
                    raise
                before = printable(", ".join(cancelled))
                raise error.reworded(f"{error.message}\n  cancelled before: {before}") from None
        return tuple(cancelled)


async def cancel_run(
    name: str,
    run: str,
    workspace: WorkspaceOptions,
    runtime: Runtime,
    begin: Callable[[], None] = lambda: None,
) -> Address:
    """Cancel a run of the object that a text names; return the address of the object.

    `begin` is called before it is cancelled.

    Raises BadUsage, NotOffered, NotFound, Invalid for a run that has ended, ServiceError.
    """
    async with opened(workspace, name, runtime, tab="runs") as world:
        calls = world.calls
        calls.check("cancel_run")
        await read_run(calls, run)
        begin()
        try:
            await calls.send("cancel_run", query=ALL_TIME, run=run)
        except Invalid as error:
            # An attempt before, whose answer was lost, may have taken effect.
            if not error.unclear or (await read_run(calls, run)).status != _CANCELLED:
                raise
        return world.subject.address


async def _cancelled(calls: ObjectCalls, row_id: str, *, chosen: bool) -> bool:
    """Cancel a backfill; return whether this did. Raise the refusal of one that was `chosen`.

    A refusal after an attempt without an answer may mean that the attempt took effect.
    """
    try:
        await calls.send("cancel_backfill", backfill=row_id)
    except Invalid as error:
        row = BackfillRow.of(await calls.send("backfill_row", backfill=row_id))
        if row.status == _CANCELLED and error.unclear:
            return True
        if chosen or row.pending:
            raise
        return False
    return True


async def _running(calls: ObjectCalls) -> tuple[str, ...]:
    if not calls.offered("backfills"):
        raise NotOffered("this server does not list backfills, so none can be cancelled")
    rows = await read_backfills(calls) or ()
    return tuple(row.id for row in rows if row.pending)
