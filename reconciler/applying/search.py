"""Look for the object of a create with an unknown outcome."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.applying.check import altered_paths
from reconciler.applying.lists import Lists, Scope
from reconciler.errors import Interrupted, ServiceError
from reconciler.model.live import LiveObject
from reconciler.model.request import Routes
from reconciler.model.text import printable
from reconciler.model.values import JSONObject

SEARCH_PAUSES = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)
"""Seconds before the searches: a server or a proxy may give up long before the work is done."""


async def search(
    lists: Lists, routes: Routes, sent: JSONObject, before: Collection[str]
) -> LiveObject | str:
    """Return the object of a create, or why it is unknown which one that is.

    It is the only new one of its name, and equals what was sent. `before` are the ids of the list
    that was read before the create.
    """
    problem = "it was not searched for"
    for seconds in SEARCH_PAUSES:
        try:
            await lists.transport.pause(seconds, "search for objects without a confirmed creation")
            result = await _look(lists, routes, sent, before)
        except Interrupted:
            return problem
        except ServiceError as error:
            result = f"it can't be searched for: {error.message}"
        if not isinstance(result, str):
            return result
        problem = result
    return problem


async def _look(
    lists: Lists, routes: Routes, sent: JSONObject, before: Collection[str]
) -> LiveObject | str:
    # Searches that wake up at the same time share a list.
    scope = Scope(routes.kind.name, routes.parent_id)
    listing = await lists.listing(scope, lists.transport.clock())
    named = listing.named(routes.parent_id, str(sent.get("name")))
    new = [item for item in named if item.id not in before and lists.is_foreign(item.identity)]
    full = await lists.living_of(new)
    if not full:
        return f"no object of this name appeared in {sum(SEARCH_PAUSES):g} s"
    ids = printable(", ".join(sorted(item.id for item in full)))
    if len(full) > 1:
        return f"there are {len(full)} new objects of this name (ids {ids})"
    if altered_paths(routes.kind, sent, full[0].body):
        return f"a new object of this name (id {ids}) differs from what was sent"
    return full[0]
