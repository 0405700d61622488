"""The configuration: resources, all of them as `Desired`, and one with the origin of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from reconciler.diagnostics import Mark
from reconciler.model.public import FieldPath, Public
from reconciler.model.settings import Policy, Readable
from reconciler.model.text import named
from reconciler.model.values import JSON, Address, FieldOrigin, Path, SecretRef, leaves, secret_refs


class State(StrEnum):
    """Whether a resource shall exist. `absent` deletes it."""

    PRESENT = "present"
    ABSENT = "absent"


class ParentRef(Public, frozen=True, gc=False):
    """The parent as configured: one of key, id and name."""

    key: str | None = None
    """Key of a declared resource."""
    id: str | None = None
    """Id of a live object."""
    name: str | None = None
    """Name of a live object."""

    def __str__(self) -> str:
        if self.key is not None:
            return self.key
        return f"id {self.id}" if self.id is not None else f"name {named(self.name or '')}"

    @property
    def value(self) -> JSON:
        """The reference as a file contains it."""
        if self.key is not None:
            return self.key
        return {"id": self.id} if self.id is not None else {"name": self.name}


class Lifecycle(Struct, frozen=True, gc=False):
    """The lifecycle settings of a resource."""

    protect: bool = False
    allow_replace: bool = False
    ignore_changes: tuple[str, ...] = ()
    """Field paths as `path_text` writes them; a path covers what is below it."""
    renamed_from: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Names and addresses of objects that may do the same work."""

    def is_beside(self, name: str, address: Address) -> bool:
        """Return whether `beside` has the name or the address of an object."""
        return any(text.strip() in (name.strip(), str(address)) for text in self.beside)

    def as_json(self) -> dict[str, JSON]:
        """Return all settings as JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def given(self) -> dict[str, JSON]:
        """Return the settings that are not the defaults, as JSON."""
        defaults = DEFAULT_LIFECYCLE.as_json()
        return {name: value for name, value in self.as_json().items() if value != defaults[name]}


DEFAULT_LIFECYCLE: Final = Lifecycle()


class Resource(Struct, frozen=True, gc=False):
    """A declared project or batch export, resolved for one environment.

    `written` and `marks` do not count for equality.
    """

    address: Address
    spec: Mapping[str, JSON]
    """The managed fields by the API's names, as written (not normalised), secrets as `SecretRef`.
    An absent field is not managed; null clears it."""
    parent: ParentRef | None = None
    """None for kinds without one, and for an export of the organization."""
    lifecycle: Lifecycle = DEFAULT_LIFECYCLE
    state: State = State.PRESENT
    pinned_id: str | None = None
    secret_version: str | None = None
    mark: Mark | None = None
    marks: Mapping[Path, Mark] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    """The names that the files use instead of those in `spec`."""
    unset: tuple[Path, ...] = ()
    """The fields that `${unset}` leaves to the service."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return bool(_COMPARED(self) == _COMPARED(other))

    __hash__ = None  # type: ignore[assignment]  # `spec` may be a dict.

    def declares_as(self, other: Resource | None) -> bool:
        """Return whether another declaration differs in nothing but its place."""
        return other is not None and replace(self, mark=None) == replace(other, mark=None)

    @property
    def name(self) -> str:
        """The name by which the live object is matched. Validation requires one."""
        return str(self.spec.get("name", "")).strip()

    def leaves(self, path: Path) -> bool:
        """Return whether `${unset}` leaves a field, or a part around it, to the service."""
        return any(path[: len(unset)] == unset for unset in self.unset)

    def near(self, path: Path) -> Mark | None:
        """Return the place of a field, or of the closest part around it that has one."""
        written = tuple(self.written.get(str(part), part) for part in path[:1]) + path[1:]
        for length in range(len(written), 0, -1):
            if written[:length] in self.marks:
                return self.marks[written[:length]]
        return self.mark


_COMPARED = attrgetter(
    *("address", "spec", "parent", "lifecycle", "state", "pinned_id", "secret_version"),
    *("mark", "unset"),
)


# Without slots, since cached properties need a dict.
class Desired(Struct, frozen=True, dict=True):
    """All resources of one environment, by address.

    `base_url` and `organization` identify the service.
    """

    environment: str
    base_url: str
    organization: str
    resources: Mapping[Address, Resource]
    policy: Policy | None = None
    """That of the files, None for files without the environment."""
    readable: Readable | None = None
    """What references may read, None for files without the environment."""

    def of_service(self, base_url: str, organization: str) -> Desired:
        """Return the same resources for a service and an organization."""
        return replace(self, base_url=base_url, organization=organization)

    def in_order(self) -> tuple[Resource, ...]:
        """Return the resources sorted by address."""
        return tuple(self.resources[address] for address in sorted(self.resources))

    @cached_property
    def secret_users(self) -> Mapping[SecretRef, Sequence[Address]]:
        """The addresses that use each secret reference, in order."""
        users: dict[SecretRef, list[Address]] = {}
        for resource in self.in_order():
            for _, ref in secret_refs(resource.spec):
                users.setdefault(ref, []).append(resource.address)
        return users

    def plain_texts(self) -> Iterator[str]:
        """Yield every text of the resources that is not secret."""
        for resource in self.resources.values():
            yield from (text for _, text in leaves(resource.spec) if isinstance(text, str))


class Entry(Struct, frozen=True, omit_defaults=True):
    """One line of the inventory: the object that a resource has."""

    id: str
    """Of the live object."""
    name: str
    """As it was applied."""
    parent: str | None = None
    """The id of its project."""
    commit: str | None = None
    """The commit whose files were applied to it, None for files that were not committed."""
    secrets: str | None = None
    """The hash of what decides its secrets, None if it is not known what was sent."""


class PublicOrigin(Public, frozen=True):
    """Where a value comes from."""

    layer: str
    """The layer, such as `resource` or `override production`."""
    file: str | None
    """Path, relative to the workspace; null without a place."""
    line: int | None
    """Line, from 1."""
    column: int | None
    """Column in characters, from 1."""

    @classmethod
    def of(cls, origin: FieldOrigin) -> Self:
        """Return the origin of a value."""
        at = origin.at
        place = (None, None, None) if at is None else (at.file, at.line, at.column)
        return cls(origin.layer, *place)


class PublicReference(Public, frozen=True):
    """A reference that was filled in."""

    reference: str
    """Its text."""
    origin: PublicOrigin
    """Where its value comes from."""


class PublicOverridden(Public, frozen=True):
    """The value of the field in a lower layer."""

    written: Any
    """The value, as written."""
    origin: PublicOrigin
    """Where it is."""


class PublicField(Public, frozen=True):
    """A field that the files manage."""

    path: FieldPath
    """Its path in the resource."""
    name: str
    """The path as text."""
    value: Any
    """The value, with references in place of secrets; null if it is unset."""
    unset: bool
    """Whether `${unset}` leaves it unmanaged."""
    secret: bool
    """Whether it contains a secret."""
    origin: PublicOrigin
    """Where the value comes from."""
    written: Any
    """The text in the file, if references were filled in, else null."""
    references: tuple[PublicReference, ...]
    """The references that were filled in."""
    overrides: tuple[PublicOverridden, ...]
    """The same field in lower layers, the next one first."""


class PublicParent(Public, frozen=True):
    """The parent: a declared one has an address, a live one an id or a name."""

    address: Address | None
    """Its address."""
    id: str | None
    """Its id."""
    name: str | None
    """Its name."""
    declared: Mark | None
    """Where it is declared."""


class PublicResource(Public, frozen=True):
    """A resource with the origin of its fields: `show NAME --format json`."""

    internal = frozenset({"collection", "in_organization"})
    version = 1
    schema = "resolved"

    address: Address
    """Its address."""
    environment: str
    """The environment of the values."""
    environments: tuple[str, ...]
    """The environments that have the resource."""
    declared: Mark
    """Where it is declared."""
    parent: PublicParent | None
    """What it belongs to; null for the organization."""
    fields: tuple[PublicField, ...]
    """The fields, in the order of output."""
    collection: str
    in_organization: bool = False
