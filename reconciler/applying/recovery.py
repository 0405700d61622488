"""Create without duplicates when an outcome is unknown: search first (docs/service.md, 15.4)."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.client import Transport, all_pages
from reconciler.errors import AmbiguousOutcome
from reconciler.model.change import Change
from reconciler.model.request import Request
from reconciler.model.wording import printable, quoted


async def create(transport: Transport, change: Change, request: Request) -> str:
    """Send a creating POST; return the id of the created object.

    If the outcome is unknown, the list is read again. A new object of that name is the created
    one; without one the request is sent once more.

    Raises:
        AmbiguousOutcome: it is unknown whether, or which, object was created.
        ServiceError: it was not created.

    """
    # Before a replacement, the object to replace has the same name.
    old = await _ids_of_name(transport, change, request) if change.live_id else set()
    repeated = False
    while True:
        try:
            return _created_id((await transport.send(request)).body, request)
        except AmbiguousOutcome:
            new = await _ids_of_name(transport, change, request) - old
            if len(new) > 1:
                raise AmbiguousOutcome(
                    f"create with unknown outcome: there are {len(new)} objects named "
                    f"{quoted(change.name)} (ids {printable(', '.join(sorted(new)))})",
                    hint="delete all but one, or pin one by `id`, then plan again",
                ) from None
            if new:
                return new.pop()
            if repeated:
                raise
            repeated = True


async def _ids_of_name(transport: Transport, change: Change, request: Request) -> set[str]:
    """Return the ids of the live objects with the name of a change."""
    return {
        str(body.get("id"))
        for body in await all_pages(transport, request.path)
        if str(body.get("name") or "").strip() == change.name.strip()
    }


def _created_id(body: object, request: Request) -> str:
    if isinstance(body, Mapping) and body.get("id") is not None:
        return str(body["id"])
    raise AmbiguousOutcome(f"{request.label}: the response contains no id")
