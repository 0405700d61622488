"""After a create that ended in doubt: look before anything else (service-facts, trap 4).

The list of the scope is read again. An object of that name that the plan did not know is the one
that was created, and is adopted. None means that it was not created, and it is tried once more.
Two mean that somebody else did the same thing at the same time: that is told, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.client import Service, all_pages
from reconciler.errors import AmbiguousOutcome
from reconciler.model.change import Change
from reconciler.model.kind import Kind
from reconciler.model.request import Request
from reconciler.model.wording import printable, quoted


async def create_carefully(
    service: Service, kind: Kind, change: Change, request: Request
) -> Mapping[str, Any]:
    """Send a creating POST; the body of what exists afterwards.

    Raises:
        AmbiguousOutcome: it can't be told whether, or which, object was created.
        ServiceError: it was not created.

    """
    known = await _of_this_name(service, kind, change, request) if change.live_id else frozenset()
    try:
        return _body((await service.send(request)).body, request)
    except AmbiguousOutcome:
        found = await _adoptable(service, change, request, known)
        if found is not None:
            return found
    try:
        return _body((await service.send(request)).body, request)
    except AmbiguousOutcome:
        found = await _adoptable(service, change, request, known)
        if found is None:
            raise
        return found


async def _of_this_name(
    service: Service, kind: Kind, change: Change, request: Request
) -> frozenset[str]:
    """Ids that carry the name already: those of an object that is about to be replaced."""
    del kind
    listed = await all_pages(service, request.path)
    return frozenset(str(each.get("id")) for each in listed if _is_named(each, change))


async def _adoptable(
    service: Service, change: Change, request: Request, known: frozenset[str]
) -> Mapping[str, Any] | None:
    listed = await all_pages(service, request.path)
    found = [
        each for each in listed if _is_named(each, change) and str(each.get("id")) not in known
    ]
    if len(found) > 1:
        ids = ", ".join(sorted(str(each.get("id")) for each in found))
        raise AmbiguousOutcome(
            f"after a create that ended in doubt there are {len(found)} objects named "
            f"{quoted(change.name)}: {printable(ids)}",
            hint="delete the one that is not meant, or pin one by `id`, and plan again",
        )
    return found[0] if found else None


def _is_named(each: Mapping[str, Any], change: Change) -> bool:
    return str(each.get("name") or "").strip() == change.name.strip()


def _body(body: object, request: Request) -> Mapping[str, Any]:
    if isinstance(body, Mapping) and body.get("id") is not None:
        return body
    raise AmbiguousOutcome(f"{request.label}: the answer names no id")
