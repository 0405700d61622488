"""Compare live objects with the plan before a write, and with what was sent after it.

The object of a create with an unknown outcome is found by such a comparison, too.
Only what the plan depends on counts: an export that ran, or a field that is not managed, makes no
change stale. Servers ignore unknown fields and overwrite some at creation (service.md, 1.1 and
4.1).
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.applying.lists import Lists, Scope
from reconciler.errors import Interrupted, ServiceError
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject, Routes
from reconciler.model.plan import Change
from reconciler.model.redaction import Mask, masked_in
from reconciler.model.schemas import canonical_text
from reconciler.model.text import printable
from reconciler.model.values import JSON, MISSING, JSONObject, Path
from reconciler.planning.compare import field_leaves, is_equal, live_values, stamp_of

SEARCH_PAUSES = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)
"""Seconds before the searches: a server or a proxy may give up long before the work is done."""


def modifications(kind: Kind, change: Change, body: JSONObject, *, mask: Mask) -> str:
    """Return `prefix: "a/" -> "b/"` for each modified field, empty without one."""
    live = live_values(kind, body) | stamp_of(kind, body)
    texts = []
    for path, value in sorted((change.seen or {}).items()):
        before, after = (canonical_text(masked_in(item, mask)) for item in (value, live.get(path)))
        if before != after:
            texts.append(f"{path}: {before} -> {after}")
    return printable("; ".join(texts))


def altered_paths(kind: Kind, sent: JSONObject, stored: JSONObject) -> tuple[Path, ...]:
    """Return the paths of sent fields that read back different, without secrets and toggles."""
    values = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, stored, live=True)}
    named = {kind.own_name(name): value for name, value in sent.items()}
    return tuple(
        leaf.path
        for leaf in field_leaves(kind.fields, named, live=False)
        if not leaf.field.secret
        and leaf.field.toggle is None
        and not is_equal(leaf.field, leaf.value, values.get(leaf.path, MISSING))
    )


def body_of_altered(kind: Kind, sent: JSONObject, altered: Collection[Path]) -> dict[str, JSON]:
    """Return the top-level fields of a body that read back different, to send them again."""
    names = {path[0] for path in altered}
    return {name: value for name, value in sent.items() if kind.own_name(name) in names}


def lacks_fields(kind: Kind, stored: JSONObject, altered: Collection[Path]) -> bool:
    """Return whether a body lacks an altered field: then it is not the whole object."""
    if not altered:
        return False
    shown = {leaf.path for leaf in field_leaves(kind.fields, stored, live=True)}
    return any(path not in shown for path in altered)


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
