"""Read objects in full of which only the short form of a list is known."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.errors import InvalidResponse, NotFound
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.resource import Desired
from reconciler.model.routes import Routes
from reconciler.reading.objects import Progress, list_scope, read_object


async def read_details(
    transport: Transport,
    live: Live,
    wanted: Collection[tuple[str, str]],
    *,
    desired: Desired,
    kinds: Sequence[Kind],
) -> Live:
    """Return live state with some objects, given by kind and id, in full.

    Objects that no longer exist or are pending deletion are left out, and what is in them.

    Raises:
        InvalidResponse: a list shows an object that cannot be read, or an answer is odd.
        ServiceError.

    """
    objects, gone = dict(live.objects), set[tuple[str, str]]()
    for kind in kinds:
        items, left = live.of(kind.name), list[LiveObject]()
        short = [item for item in items if not item.complete and (kind.name, item.id) in wanted]
        read = await _in_full(transport, kind, desired.organization, short)
        for item in items:
            full, place = read.get(item.id, item), (kind.parent or "", item.parent_id or "")
            if full is None or kind.pending_deletion(full.body) or place in gone:
                gone.add((kind.name, item.id))
            else:
                left.append(full)
        objects[kind.name] = tuple(left)
    return replace(live, objects=objects)


async def _in_full(
    transport: Transport, kind: Kind, organization: str, short: Sequence[LiveObject]
) -> dict[str, LiveObject | None]:
    """Return objects in full by id, None for those that are gone."""
    progress = Progress(transport, f"{kind.collection} in full")
    read: dict[str, LiveObject | None] = {}
    missing: list[LiveObject] = []

    async def complete(item: LiveObject) -> None:
        try:
            read[item.id] = await read_object(
                transport, kind, organization, item.id, parent_id=item.parent_id
            )
        except NotFound:
            missing.append(item)
            read[item.id] = None
        progress.update(None, len(read), len(short))

    await together(complete(item) for item in short)
    await _check_gone(transport, kind, organization, missing)
    return read


async def _check_gone(
    transport: Transport, kind: Kind, organization: str, missing: Sequence[LiveObject]
) -> None:
    """Raise InvalidResponse if a list still shows an object that was answered with 404."""
    for parent_id in sorted({item.parent_id for item in missing}, key=str):
        listed = {item.id for item in await list_scope(transport, kind, organization, parent_id)}
        for item in missing:
            if item.parent_id == parent_id and item.id in listed:
                label = Routes(kind, organization, parent_id).read(item.id).label
                raise InvalidResponse(
                    f"{label}: 404 for an object that is in the list",
                    hint="run it again; if it persists, check that the API key may read this "
                    f"{kind.name}",
                )
