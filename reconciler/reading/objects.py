"""Read the objects of one scope, or one object."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from reconciler.client import Transport, complete_list
from reconciler.model.event import Reading
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.routes import Routes
from reconciler.model.wording import printable
from reconciler.reading.typed import live_object


class Progress(Struct, frozen=True):
    """Reports how many objects of a collection are read, in all of its lists together."""

    transport: Transport
    collection: str
    _lists: dict[str | None, tuple[int, int]] = field(default_factory=dict)

    def update(self, parent_id: str | None, read: int, total: int) -> None:
        """Report that `read` of `total` objects below a parent are read."""
        self._lists[parent_id] = (read, total)
        if self.transport.listen is not None:
            reads, totals = zip(*self._lists.values(), strict=True)
            self.transport.listen(Reading(self.collection, sum(reads), sum(totals)))


async def list_scope(
    transport: Transport,
    kind: Kind,
    organization: str,
    parent_id: str | None,
    *,
    on_page: Callable[[int, int], None] = lambda *_: None,
) -> list[LiveObject]:
    """Return every object below a parent, or of the whole organization without one.

    Raises:
        IncompleteList: the list contradicts itself in three readings.
        ServiceError.

    """
    path = Routes(kind, organization, parent_id).collection
    label = printable(f"GET {path}")
    items = await complete_list(transport, path, on_page=on_page)
    return [
        live_object(kind, item, expected_id=None, complete=not kind.detail, label=label)
        for item in items
    ]


async def read_object(
    transport: Transport,
    kind: Kind,
    organization: str,
    live_id: str,
    *,
    parent_id: str | None = None,
) -> LiveObject:
    """Return one object in full. Without `parent_id` it is read below the organization.

    Raises:
        NotFound: there is no such object.
        InvalidResponse: the answer is not this object.
        ServiceError.

    """
    request = Routes(kind, organization, parent_id).read(live_id)
    body = (await transport.send(request)).body
    return live_object(kind, body, expected_id=live_id, complete=True, label=request.label)
