"""Cancel the backfills of a live object."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.commands.runtime import Workspace
from reconciler.commands.targets import opened
from reconciler.errors import BadUsage, Invalid, NotFound
from reconciler.model.event import Noted
from reconciler.model.live import id_text
from reconciler.model.run import BackfillRow
from reconciler.model.text import printable, quoted
from reconciler.service.calls import ObjectCalls
from reconciler.service.runs import read_backfills

_CANCELLED = "Cancelled"


async def cancel_backfills(
    workspace: Workspace,
    name: str,
    *,
    row_id: str | None = None,
    begin: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Cancel the running backfills of the object that a text names, or one; return their ids.

    `row_id` is the id of the only backfill. `begin` is called before the first is cancelled. One
    that ended meanwhile is left out. Each that was cancelled is reported at once.

    Raises BadUsage, NotOffered, Interrupted, ServiceError.
    """
    async with opened(workspace, "backfills") as targets:
        calls = targets.calls(targets.one(name))
        if row_id is None:
            calls.check("backfills")
            ids = [row.id for row in await read_backfills(calls) or () if row.pending]
        elif id_text(row_id) is None:
            raise BadUsage(f"invalid id {quoted(row_id)}")
        else:
            ids = [row_id]
        begin()
        cancelled: list[str] = []
        for item in ids:
            if await _cancelled(calls, item, chosen=row_id is not None):
                cancelled.append(item)
                targets.session.runtime.listen(Noted(f"cancelled backfill {item}", important=True))
        return tuple(cancelled)


async def _cancelled(calls: ObjectCalls, row_id: str, *, chosen: bool) -> bool:
    """Cancel a backfill; return whether this did. Raise the refusal of one that was `chosen`.

    A refusal after an attempt without an answer may mean that the attempt took effect.
    """
    try:
        await calls.send("cancel_backfill", backfill=row_id)
    except NotFound as error:
        message = f"{calls.live.kind} {quoted(calls.live.name)} has no backfill {printable(row_id)}"
        raise error.reworded(message) from None
    except Invalid as error:
        row = BackfillRow.of(await calls.send("backfill_row", backfill=row_id))
        if row.status == _CANCELLED and error.unclear:
            return True
        if chosen or row.pending:
            raise
        return False
    return True
