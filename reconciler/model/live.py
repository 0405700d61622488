"""Live state, objects as the API returns them, and the calls that read and change them.

Another as-code tool, posthog-definitions, pairs its files with live objects by a marker in their
names (service.md 22): without it, its next run creates a second object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from math import inf
from sys import intern
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.kind import Dialect, Integrations, Kind
from reconciler.model.text import printable
from reconciler.model.values import JSON, Address, JSONObject

_ID = re.compile(r"[A-Za-z0-9_-]+")
Identity: TypeAlias = tuple[str, str]
"""The kind and the id of a live object."""
OTHER_TOOL = "posthog-definitions"
"""Its name, which is the code of violations about it, too."""
_MARKER = re.compile(r"(?:<!--\s*|\[)iac:\S+\s+iac:hash:\S+?(?:\s*-->|\])\s*\Z")
Query: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Parameters. One with several values is repeated."""


def id_text(value: JSON) -> str | None:
    """Return the id of an object as text, None for a value that is no id.

    Ids become parts of paths, so text may contain only letters, digits, `-` and `_`.
    """
    if value.__class__ is int:  # Not a bool.
        return intern(str(value))  # Many objects have the same parent.
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return text if _ID.fullmatch(text) else None


def is_same_id(one: str, other: str) -> bool:
    """Return whether the service takes both for one id: UUIDs of other case, without hyphens."""
    return one.replace("-", "").lower() == other.replace("-", "").lower()


class LiveObject(Struct, frozen=True):
    """One live object."""

    kind: str
    id: str
    name: str
    body: Mapping[str, JSON]
    parent_id: str | None = None
    """None for an object of the organization."""
    complete: bool = True
    """Whether the body is the answer of a detail request, not the short form of a list."""

    @property
    def identity(self) -> Identity:
        """Its kind and id."""
        return self.kind, self.id

    @property
    def address(self) -> Address:
        """The address of the object while no resource claims it."""
        return Address.of_unmanaged(self.kind, self.id)


# With a dict, since cached properties need one.
class Live(Struct, frozen=True, dict=True):
    """All live objects for one plan.

    An object that is missing here does not exist, unless it is in a parent of `unread`: reading
    fails if it cannot see all of them.
    """

    objects: Mapping[str, tuple[LiveObject, ...]]
    dialect: Dialect | None = None
    """None if unknown."""
    unlisted: frozenset[str] = frozenset()
    """Kinds without a list of all for the key: read in each parent, or those of configured ids."""
    unread: frozenset[tuple[str, str]] = frozenset()
    """Objects, by kind and id, whose contents were not read: a plan did not need them so far."""
    read_at: float = -inf
    """When reading began, in seconds of the clock."""
    details_at: Mapping[tuple[str, str], float] = {}
    """When objects were requested in full, by kind and id, in seconds of the clock."""
    integrations: Mapping[str, Integrations] = {}
    """The integrations of the parents that were read, by id of the parent."""

    @property
    def serves_organization(self) -> bool:
        """Whether objects are written below the organization if no parent is configured.

        Real servers fail there (service.md, 1.10), and keys limited to projects are refused.
        """
        return self.dialect is Dialect.INTERFACE and not self.unlisted

    def seen_at(self, kind: str, live_id: str) -> float:
        """Return when an object was requested that is here."""
        return self.details_at.get((kind, live_id), self.read_at)

    def of_old(self) -> Live:
        """Return the same, read too long ago to serve as a check before a write."""
        return replace(self, read_at=-inf, details_at={})

    @cached_property
    def by_identity(self) -> Mapping[Identity, LiveObject]:
        """All objects by kind and id."""
        return {item.identity: item for items in self.objects.values() for item in items}

    def of(self, kind: str) -> tuple[LiveObject, ...]:
        """Return the objects of one kind, in the order of reading."""
        return self.objects.get(kind, ())


def is_of_other_tool(name: str) -> bool:
    """Return whether a live name ends with the marker."""
    return _MARKER.search(name) is not None


def plain_name(name: str) -> str:
    """Return a live name without the marker and without whitespace around it."""
    return _MARKER.sub("", name).strip()


class Repeat(StrEnum):
    """Whether a request may be repeated if its outcome is unknown (a timeout, a reset, a 5xx)."""

    SAFE = "safe"
    """Repeating has the same effect: GET, PATCH of fixed values, DELETE, pause, unpause."""
    IN_STEPS = "in_steps"
    """Safe, and a 500 has done a part of the work: it is repeated at once, for a while."""
    AFTER_LOOKING = "after_looking"
    """A POST that creates: the transport never repeats it; the applier searches first."""


class Request(Struct, frozen=True):
    """One HTTP call."""

    method: str
    path: str
    """Below `base_url`."""
    repeat: Repeat
    body: JSONObject | None = None
    """May hold secret references."""
    query: Query = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Method and path for messages, printable: the path contains ids of the service."""
        return printable(f"{self.method} {self.path}")


class Answer(Struct, frozen=True):
    """The response: its status and decoded JSON body, None without one."""

    status: int
    body: JSON
    attempts: int = 1
    """How often the request was sent."""
    unclear: bool = False
    """Whether an attempt before the last may have taken effect."""
    sent_at: float = -inf
    """When the last one was sent, in seconds of the clock."""


class Paging(StrEnum):
    """What an operation returns."""

    ONE = "one"
    """One object."""
    PAGES = "pages"
    """A list with `limit` and `offset`."""
    CURSOR = "cursor"
    """A list whose `next` is the address of the next page; it has no count."""


class Operation(Struct, frozen=True):
    """One operation of the API."""

    name: str
    """Unique in its kind: `pause`, `runs`, `run_logs`."""
    method: str
    path: str
    """Below the path of the object, such as `runs/{run}/logs/`, or absolute if it begins with a
    slash, with `{organization}`, `{parent}` and `{id}`."""
    scope: str | None
    """The least scope of an API key, None if it is not documented."""
    paging: Paging = Paging.ONE
    repeat: Repeat = Repeat.SAFE
    below_parent: bool = False
    """Whether only the path of the parent has it, not the path of the organization."""
    since: Dialect | None = None
    """The first dialect that has it, None for an open end."""
    until: Dialect | None = None
    """The last one."""
    refused_to_keys: frozenset[Dialect] = frozenset()
    """The dialects that have it, and refuse it to API keys."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Parameters that are always sent."""
    source: str = ""
    """Where service.md describes it."""

    def offered_by(self, dialect: Dialect | None) -> bool:
        """Return whether servers of a dialect offer it to API keys; True if unknown."""
        if dialect is None:
            return True
        offered = dialect in Dialect.between(self.since, self.until)
        return offered and dialect not in self.refused_to_keys


class Routes(Struct, frozen=True):
    """Paths and requests for the objects of one kind, below one parent.

    Without `parent_id` they are those of the whole organization, where the kind has such paths.
    """

    kind: Kind
    organization: str
    parent_id: str | None = None

    @property
    def collection(self) -> str:
        """The path that lists objects and creates them."""
        paths = self.kind.paths
        survey = paths.survey if self.parent_id is None else None
        template = survey or paths.collection
        return template.format(organization=self.organization, parent=self.parent_id)

    def read(self, live_id: str) -> Request:
        """Return the request that reads one object."""
        return Request("GET", self._object(live_id), Repeat.SAFE)

    def create(self, body: JSONObject) -> Request:
        """Return the request that creates an object. A repeat may create a second one."""
        return Request("POST", self.collection, Repeat.AFTER_LOOKING, body=body)

    def patch(self, live_id: str, body: JSONObject) -> Request:
        """Return the request that sets fields. A repeat has the same effect."""
        return Request("PATCH", self._object(live_id), Repeat.SAFE, body=body)

    def delete(self, live_id: str, dialect: Dialect | None = None) -> Request:
        """Return the request that deletes an object. A repeat has the same effect."""
        if self.kind.deleted_by is not None:
            return self.patch(live_id, self.kind.deleted_by)
        in_steps = dialect is not None and dialect in self.kind.deleted_in_steps
        repeat = Repeat.IN_STEPS if in_steps else Repeat.SAFE
        return Request("DELETE", self._object(live_id), repeat)

    def action(self, live_id: str, name: str) -> Request:
        """Return the request of an action on an object, such as `pause`."""
        return Request("POST", f"{self._object(live_id)}{name}/", Repeat.SAFE, body={})

    def operation(
        self,
        operation: Operation,
        live_id: str = "",
        *,
        body: JSONObject | None = None,
        query: Query | None = None,
        **names: str,
    ) -> Request:
        """Return the request of an operation. `names` are ids that its path contains."""
        path = operation.path.format(
            organization=self.organization, parent=self.parent_id, id=live_id, **names
        )
        if not path.startswith("/"):
            path = f"{self._object(live_id)}{path}"
        sent = (body or {}) if operation.method != "GET" else None
        return Request(
            operation.method,
            path,
            operation.repeat,
            body=sent,
            query={**operation.query, **(query or {})},
        )

    def _object(self, live_id: str) -> str:
        return f"{self.collection}{live_id}/"
