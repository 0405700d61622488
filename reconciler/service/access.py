"""Read what the API key may do and see. Nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from reconciler.errors import Forbidden, InvalidResponse, NotFound, ServiceError
from reconciler.model.kind import Dialect, Kind
from reconciler.model.live import Repeat, Request
from reconciler.model.settings import texts_of
from reconciler.service.pages import page_of
from reconciler.service.transport import Transport

_ORGANIZATIONS = "/api/organizations/"
KEY = Request("GET", "/api/personal_api_keys/@current/", Repeat.SAFE)
_SINCE_2026 = frozenset({"description", "is_legacy_hashing"})
"""Fields that only servers of autumn 2026 show (service.md, 12)."""
ALL, _READ, _WRITE = "*", ":read", ":write"


class KeyAccess(Struct, frozen=True):
    """What an API key says about itself (service.md, 12)."""

    label: str
    scopes: tuple[str, ...]
    projects: tuple[str, ...] = ()
    """Its limits, () for none."""
    organizations: tuple[str, ...] = ()
    """Its limits, () for none."""
    made_at: str = ""
    """When it was last rolled or, before that, created, ISO 8601. Keys have no end."""
    dialect: Dialect | None = None
    """The dialect that its fields show, None if they do not."""

    @property
    def may_write(self) -> bool:
        """Whether it may change anything."""
        return any(scope == ALL or scope.endswith(_WRITE) for scope in self.scopes)


async def read_key(transport: Transport) -> KeyAccess | None:
    """Return what the key says about itself, None if the server does not have this resource.

    Raises ServiceError.
    """
    try:
        body = (await transport.send(KEY)).body
    except NotFound:
        return None
    if not isinstance(body, Mapping) or not isinstance(body.get("scopes"), list):
        raise InvalidResponse(f"{KEY.label}: the response is not a key")
    return KeyAccess(
        str(body.get("label") or ""),
        texts_of(body["scopes"]),
        texts_of(body.get("scoped_teams")),
        texts_of(body.get("scoped_organizations")),
        str(body.get("last_rolled_at") or body.get("created_at") or ""),
        Dialect.V2026 if body.keys() >= _SINCE_2026 else None,
    )


async def read_organizations(transport: Transport) -> Mapping[str, str]:
    """Return the names of the organizations that the key sees, by id. Raises ServiceError."""
    body = (await transport.send(Request("GET", _ORGANIZATIONS, Repeat.SAFE))).body
    _, items, _ = page_of(body, f"GET {_ORGANIZATIONS}")
    return {str(item.get("id")): str(item.get("name")) for item in items}


async def missing_feature(
    transport: Transport, kind: Kind, organization: str, dialect: Dialect | None
) -> str | None:
    """Return the paid feature that writes need and the organization lacks, None without one.

    None, too, if the key may not see the features. Raises ServiceError.
    """
    needed = kind.features.get(dialect or "")
    if needed is None:
        return None
    path = f"{_ORGANIZATIONS}{organization}/"
    try:
        body = (await transport.send(Request("GET", path, Repeat.SAFE))).body
    except (Forbidden, NotFound):
        return None
    listed = body.get("available_product_features") if isinstance(body, Mapping) else None
    if not isinstance(listed, list):
        return None
    names = {item.get("key") for item in listed if isinstance(item, Mapping)}
    return None if needed in names else needed


async def known_key(transport: Transport) -> KeyAccess | None:
    """Return what the key says about itself, None if it cannot be read.

    Every key may read itself, so this works in an organization without exports.
    """
    try:
        return await read_key(transport)
    except ServiceError:
        return None


def read_scope(kind: str) -> str:
    """Return the least scope that reads the objects of a kind."""
    return f"{kind}{_READ}"


def write_scope(kind: str) -> str:
    """Return the least scope that changes the objects of a kind."""
    return f"{kind}{_WRITE}"


def missing_scopes(scopes: Collection[str], needed: Iterable[str]) -> tuple[str, ...]:
    """Return the needed scopes that a key with some scopes lacks."""
    return tuple(scope for scope in needed if not _allows(scopes, scope))


def _allows(scopes: Collection[str], needed: str) -> bool:
    wider = needed.removesuffix(_READ) + _WRITE if needed.endswith(_READ) else needed
    return not {ALL, needed, wider}.isdisjoint(scopes)
