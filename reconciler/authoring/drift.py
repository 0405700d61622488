"""Drift as a value, and who changed live objects by the activity log (service.md, 10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.client.waits import together
from reconciler.diagnostics import Mark
from reconciler.errors import ServiceError
from reconciler.model.address import Address
from reconciler.model.comparison import comparable
from reconciler.model.files import FileChange
from reconciler.model.plan import FieldChange, Origin, PlanSource
from reconciler.model.public import AddressText, Count, Public, derived
from reconciler.model.values import JSON, MISSING, JSONObject, Path, path_text
from reconciler.reading.calls import NotOffered, ObjectCalls

OPERATION = "activity"
_MOST_ENTRIES = 200
"""Entries of one object that are read."""
_REFUSED = (402, 403, 404)
_WITHOUT_PLAN = 402
_NAMES = {"enabled": "paused"}
"""The log calls the field `enabled`, with the values of `paused` (service.md, 15.64)."""


class Attribution(Public, frozen=True):
    """The entry of the activity log that set the live value."""

    by: str | None
    """The person; null for the service and for requests by API key that it does not attribute."""
    at: str
    """ISO 8601."""


class DriftedField(Public, frozen=True):
    """A field whose live value changed since the base. An absent value is null."""

    internal = frozenset({"change"})

    change: FieldChange
    attribution: Attribution | None = field(default=None, name="changed")
    """Null if unknown."""

    @property
    def path(self) -> Path:
        """The path, with the names that the files use."""
        return self.change.written or self.change.path

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)

    @derived
    def configured(self) -> JSON:
        """The configured value."""
        return _null(self.change.after)

    @derived
    def live(self) -> JSON:
        """The live value."""
        return _null(self.change.before)

    @derived
    def conflict(self) -> bool:
        """The configuration changed too."""
        return self.change.origin is Origin.BOTH


class DriftedObject(Public, frozen=True):
    """A resource whose live object drifted."""

    address: Address
    name: str
    live_id: str
    fields: tuple[DriftedField, ...]
    parent_name: str | None = None
    at: Mark | None = None
    """The resource in the files."""
    paused_by_service: bool = False
    """The service probably paused it after failures."""


class Drift(Public, frozen=True):
    """What differs in live state since the git base."""

    schema = "drift"
    internal = frozenset({"source", "renamed"})
    version = 1

    source: PlanSource
    objects: tuple[DriftedObject, ...]
    compared: Count
    deleted: tuple[Address, ...] = ()
    """Resources of the base without a live object."""
    unmanaged: Count = 0
    remarks: tuple[str, ...] = ()
    renamed: Mapping[Address, str] = {}

    @derived
    def environment(self) -> str:
        """Name of the environment."""
        return self.source.environment

    @derived
    def organization(self) -> str:
        """Id of the organization."""
        return self.source.organization

    @derived
    def base_url(self) -> str:
        """Base URL of the service."""
        return self.source.base_url

    @derived
    def base(self) -> str | None:
        """The commit of the base."""
        return self.source.base

    @derived
    def renamed_(self) -> dict[AddressText, str]:
        """Resources of the base whose object was probably renamed in the service, with its name."""
        return {str(address): name for address, name in self.renamed.items()}

    @property
    def empty(self) -> bool:
        """Whether nothing drifted. Unmanaged objects are no drift."""
        return not (self.objects or self.deleted or self.renamed)


class Placed(Public, frozen=True):
    """A live value that is written."""

    internal = frozenset({"path", "value"})

    address: Address
    path: Path
    value: JSON
    layer: str
    """`resource`, `override ENVIRONMENT`, `defaults of FILE` or `defaults`."""
    at: Mark
    """The value before the edit."""
    replaces: str = ""
    """The reference that stays for other environments, "" for none."""

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)


class LeftOut(Public, frozen=True):
    """A drifted field that is not written."""

    internal = frozenset({"path"})

    address: Address
    path: Path
    reason: str

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)


class Pulled(Public, frozen=True):
    """What `pull` writes."""

    schema = "pull"
    internal = frozenset({"drift", "texts", "changes"})
    version = 2

    drift: Drift
    placed: tuple[Placed, ...]
    left_out: tuple[LeftOut, ...]
    texts: Mapping[str, str]
    changes: Mapping[str, FileChange]
    written: bool = True

    @derived
    def environment(self) -> str:
        """Name of the environment."""
        return self.drift.source.environment

    @derived
    def files(self) -> tuple[str, ...]:
        """The changed files."""
        return tuple(self.texts)

    def __repr__(self) -> str:
        # Texts of files may contain secrets.
        return f"Pulled(files={self.files}, placed={len(self.placed)}, written={self.written})"


def _null(value: JSON) -> JSON:
    return None if value is MISSING else value


class _Change(Struct, frozen=True):
    """The newest entry of the log that sets a field."""

    after: JSON
    attribution: Attribution


async def attributed(
    drift: Drift, calls_of: Callable[[DriftedObject], ObjectCalls | None]
) -> Drift:
    """Return drift with who changed it and when, where the log says so.

    A field is attributed only if the newest entry that sets it has the live value: what the log
    does not show, such as a change of a destination, stays unknown. A server that refuses its log
    is asked once. Raises ServiceError for other errors.
    """
    known: list[DriftedObject] = []
    waiting = list(drift.objects)
    try:
        while waiting and not known:
            known.append(await _attributed(waiting.pop(0), calls_of))
        known += await together(_attributed(item, calls_of) for item in waiting)
    except (NotOffered, ServiceError) as error:
        remark = _remark(error)
        if remark is None:
            raise
        return replace(drift, remarks=(*drift.remarks, remark))
    return replace(drift, objects=tuple(known))


def _remark(error: NotOffered | ServiceError) -> str | None:
    """Return why the log cannot be read, None for an error that may pass."""
    if isinstance(error, NotOffered):
        return "the author is unknown: this server has no activity log for API keys"
    if error.status not in _REFUSED:
        return None
    if error.status == _WITHOUT_PLAN:
        return "the author is unknown: the organization has no audit log (402)"
    return (
        f"the author is unknown: the key may not read the activity log ({error.status}); "
        "it needs the scope activity_log:read"
    )


async def _attributed(
    item: DriftedObject, calls_of: Callable[[DriftedObject], ObjectCalls | None]
) -> DriftedObject:
    calls = calls_of(item)
    fields = {str(field.change.path[0]) for field in item.fields if len(field.change.path) == 1}
    if calls is None or not fields:
        return item
    query = {"item_id": item.live_id, "page_size": "100"}
    latest = await _latest(calls.listed(OPERATION, query=query), fields)
    return replace(item, fields=tuple(_with(field, latest, calls) for field in item.fields))


async def _latest(entries: AsyncIterator[JSONObject], fields: set[str]) -> Mapping[str, _Change]:
    """Return the newest change of each field."""
    latest: dict[str, _Change] = {}
    number = 0
    async for entry in entries:
        number += 1
        for name, change in _changes(entry):
            latest.setdefault(name, change)
        if fields <= latest.keys() or number >= _MOST_ENTRIES:
            break
    return latest


def _changes(entry: JSONObject) -> Sequence[tuple[str, _Change]]:
    """Return the fields that an entry sets; none for an entry of another form."""
    detail, at = entry.get("detail"), entry.get("created_at")
    changes = detail.get("changes") if isinstance(detail, Mapping) else None
    if not isinstance(changes, list) or not isinstance(at, str):
        return ()
    attribution = Attribution(_person(entry), at)
    return [
        (_NAMES.get(name, name), _Change(change.get("after"), attribution))
        for change in changes
        if isinstance(change, Mapping) and isinstance(name := change.get("field"), str)
    ]


def _person(entry: JSONObject) -> str | None:
    """Return the name and address of the user of an entry, None for the service.

    Before July 2026, writes by API key are attributed to the service.
    """
    user = entry.get("user")
    if not isinstance(user, Mapping) or entry.get("is_system") is True:
        return None
    names = [user.get(part) for part in ("first_name", "last_name")]
    name = " ".join(part for part in names if isinstance(part, str) and part)
    email = user.get("email")
    address = f"<{email}>" if isinstance(email, str) and email else ""
    return " ".join(part for part in (name, address) if part) or None


def _with(field: DriftedField, latest: Mapping[str, _Change], calls: ObjectCalls) -> DriftedField:
    """Return a field with its attribution, if the log shows its live value as the newest one."""
    path = field.change.path
    change = latest.get(str(path[0])) if len(path) == 1 else None
    known = calls.kind.field_named(str(path[0]))
    if change is None or known is None:
        return field
    live = known.live_value(calls.live.body)
    if comparable(known, change.after) != comparable(known, live):
        return field
    return replace(field, attribution=change.attribution)
