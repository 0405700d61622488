"""Read the integrations of parents whose resources name some. They are never written."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from reconciler.errors import Forbidden, NotFound
from reconciler.model.kind import Integrations, Kind
from reconciler.model.live import Live
from reconciler.service.pages import complete_list
from reconciler.service.transport import Transport
from reconciler.service.waits import together

_OLD = "this server lists no integrations to API keys"
_NONE = "its list has none for exports, as that of servers before May 2026 for API keys"


async def read_integrations(
    transport: Transport, live: Live, parent_ids: Collection[str], *, kinds: Sequence[Kind]
) -> Live:
    """Return live state with the integrations of some parents: one list for each.

    Raises ServiceError, but not for integrations that the key may not see.
    """
    kind = next(kind for kind in kinds if kind.paths.integrations)
    ordered = sorted(parent_ids)
    tables = await together(_listed(transport, kind, parent_id) for parent_id in ordered)
    read = dict(zip(ordered, tables, strict=True))
    return replace(live, integrations={**live.integrations, **read})


async def _listed(transport: Transport, kind: Kind, parent_id: str) -> Integrations:
    try:
        bodies = await complete_list(transport, kind.paths.integrations.format(parent=parent_id))
    except Forbidden as error:
        return Integrations(hidden=error.message)
    except NotFound:
        return Integrations(hidden=_OLD)
    items = tuple(filter(None, map(kind.integration_of, bodies)))
    return Integrations(items, hidden="" if items else _NONE)
