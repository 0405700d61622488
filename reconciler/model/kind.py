"""What a kind can declare. Kinds are values of `Kind`; every generic layer asks them.

If a new kind needs a new sort of difference, `Kind` or `Field` gains an attribute with a
default, and the generic layer learns it once. No layer names a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from reconciler.model.address import Address
from reconciler.model.change import Action, Consequence, FieldChange
from reconciler.model.live import Dialect, LiveObject
from reconciler.model.resource import Resource
from reconciler.model.shape import Shape
from reconciler.model.values import JSON, MISSING, JSONObject, Missing, Path, value_at


@dataclass(frozen=True, slots=True)
class Toggle:
    """A boolean that is changed by calls of its own, never by PATCH (service-facts 1.7).

    `on` and `off` are the actions; each is POSTed to `<object>/<action>/`.
    """

    on: Action
    off: Action


class OnCreate(StrEnum):
    """What happens to a field in the body of a create."""

    SEND = "send"
    AFTER = "after"
    """The server refuses or overwrites it at creation: it is PATCHed right afterwards."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """An object whose inner fields depend on a tag beside them: a destination by its type.

    `{tag: "S3", body: {...}, <extras>...}`. PATCH carries tag and extras with any part of the
    body (service-facts 1.6, trap 13). An unknown tag is compared as open JSON.
    """

    tag: str
    body: str
    variants: Mapping[str, tuple[Field, ...]]
    extras: tuple[Field, ...] = ()
    fixed_in: frozenset[Dialect] = frozenset()
    """Dialects in which the tag can't change in place: it is planned as a replacement."""
    unlisted: frozenset[str] = frozenset()
    """Tags whose objects are in no list: without an id they can't be found again."""

    def canonical(self, value: JSON) -> JSON:
        """The value itself: the differ walks the inner fields, which have shapes of their own."""
        return value


@dataclass(frozen=True, slots=True)
class Field:
    """One field that files can manage.

    default
        What the server means by absent or null; `MISSING` where it means null.
    clearable
        Whether the API takes null. Where not, resetting sends `reset`, else `default`.
    reset
        What to send when the key is removed from the files, if neither null nor the default.
    secret
        Never returned by the API, so it can't be compared (service-facts 1.5).
    on_create
        Whether the create carries it.
    toggle
        The calls that change it, for a boolean with actions of its own.
    brings
        Fields beside it that must be in the same PATCH (service-facts traps 16 and 18).
    fixed_in
        Dialects in which it can't change in place.
    summary
        Whether the short shape of a list carries it.
    aliases
        Other names that files and servers give it.
    names
        The name that each dialect's server takes, where it isn't `name` everywhere.
    read_at
        Further places of a live body where its value may stand.
    required
        Whether a create must carry it.
    verbatim
        Whether plans and import tell it as it is written or shown, not in the form compared.
    """

    name: str
    shape: Shape | Tagged
    default: JSON | Missing = MISSING
    clearable: bool = False
    reset: JSON | Missing = MISSING
    secret: bool = False
    on_create: OnCreate = OnCreate.SEND
    toggle: Toggle | None = None
    brings: tuple[str, ...] = ()
    fixed_in: frozenset[Dialect] = frozenset()
    summary: bool = False
    aliases: tuple[str, ...] = ()
    names: Mapping[Dialect, str] = field(default_factory=dict)
    read_at: tuple[Path, ...] = ()
    required: bool = False
    verbatim: bool = False

    def sent_as(self, dialect: Dialect | None) -> tuple[str, ...]:
        """The names under which the servers of a dialect take it; all where none is known.

        Servers drop top-level fields that they do not know (service-facts 1.1), so sending a
        name too many is harmless, and sending the wrong one alone loses the value.
        """
        if not self.names:
            return (self.name,)
        if dialect is None:
            return tuple(sorted(set(self.names.values())))
        return (self.names[dialect],)

    def live_value(self, body: JSONObject) -> JSON:
        """Its value in a live body: under its name, an alias, or a place inside; else MISSING."""
        for path in ((self.name,), *((alias,) for alias in self.aliases), *self.read_at):
            found = value_at(body, path)
            if found is not MISSING and found is not None:
                return found
        return value_at(body, (self.name,))


@dataclass(frozen=True, slots=True)
class Paths:
    """Where objects of a kind live. `{organization}` and `{parent}` are filled in by the reader.

    `collection` lists and creates; an object is `<collection><id>/`. `survey` lists the objects
    of a whole organization in one go, and serves those without a parent.
    """

    collection: str
    survey: str | None = None


def _never_by_date(body: JSONObject, dialect: Dialect | None) -> bool:
    del body, dialect
    return False


@dataclass(frozen=True, slots=True)
class Backfill:
    """How past ranges of an object are made up for (service-facts 1.8).

    `paths` are tried in order until one is there. `by_date` tells whether the server wants dates
    instead of moments for an object.
    """

    paths: tuple[str, ...]
    by_date: Callable[[JSONObject, Dialect | None], bool] = _never_by_date


@dataclass(frozen=True, slots=True)
class Situation:
    """What a consequence rule may look at: one change with all around it. Pure data.

    `desired` is None for a deletion, `live` for a creation. `children` are the live objects
    below the one that is changed, managed or not. `now` is when the live side was read.
    """

    action: Action
    address: Address
    desired: Resource | None
    live: LiveObject | None
    fields: tuple[FieldChange, ...]
    now: datetime
    dialect: Dialect | None = None
    children: Sequence[LiveObject] = ()

    def field(self, *path: str) -> FieldChange | None:
        """The change of the field at a path, if there is one."""
        for change in self.fields:
            if change.path == path:
                return change
        return None


ConsequenceRule: TypeAlias = Callable[[Situation], Consequence | None]
"""A rule's function carries its documentation; its id and severity stand in the consequence."""


def _no_dialect(body: JSONObject) -> Dialect | None:
    del body
    return None


def _never_gone(body: JSONObject) -> bool:
    del body
    return False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource: everything that the generic layers need to know about it.

    name, collection
        `batch_export` in addresses; `batch_exports` as the map in files and file names.
    parent
        The kind whose objects contain these, or None.
    parent_key
        The YAML key that names the parent ("project"), and `parent_field` the field of a live
        body that holds the parent's id ("team_id").
    unique_names
        Whether the server refuses two objects of one name in one scope.
    deletion_switch
        The policy key that must be true before any object of this kind is deleted.
    detail
        Whether the list has a short shape, so that managed objects are read one by one.
    pending_deletion
        Whether a live body is that of an object already on its way out (service-facts 4.3).
    last_changed
        The field of a live body that moves with every change, or None.
    consequences
        The ids that `rules` tell, for `policy.deny` to name.
    activity
        The path inside a live body of what happened last, for telling twins apart.
    """

    name: str
    collection: str
    paths: Paths
    fields: tuple[Field, ...]
    parent: str | None = None
    parent_key: str | None = None
    parent_field: str | None = None
    unique_names: bool = False
    deletion_switch: str | None = None
    detail: bool = False
    pending_deletion: Callable[[JSONObject], bool] = _never_gone
    dialect_of: Callable[[JSONObject], Dialect | None] = _no_dialect
    last_changed: str | None = None
    activity: Path = ()
    backfill: Backfill | None = None
    rules: tuple[ConsequenceRule, ...] = field(default=())
    consequences: tuple[str, ...] = ()

    def field_named(self, name: str) -> Field | None:
        """The field of a name or alias."""
        for each in self.fields:
            if each.name == name or name in each.aliases:
                return each
        return None
