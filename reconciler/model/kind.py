"""What a kind can declare. Kinds are values of `Kind`; every generic layer asks them.

If a new kind needs a new sort of difference, `Kind` or `Field` gains an attribute with a
default, and the generic layer learns it once. No layer names a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.change import Action
from reconciler.model.field_types import FROM_SCHEMA, FieldType, Text
from reconciler.model.live import Dialect
from reconciler.model.rule import Rule
from reconciler.model.values import JSON, MISSING, JSONObject, Missing, Path, value_at


@dataclass(frozen=True, slots=True)
class Toggle:
    """A boolean that is changed by calls of its own, never by PATCH (docs/service.md 1.7).

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
class Variant:
    """An object whose inner fields depend on a tag beside them: a destination by its type.

    `{tag: "S3", body: {...}, <extras>...}`. PATCH carries tag and extras with any part of the
    body (docs/service.md 1.6). An unknown tag is compared as open JSON.
    """

    tag: str
    body: str
    variants: Mapping[str, tuple[Field, ...]]
    extras: tuple[Field, ...] = ()
    fixed_since: Dialect | None = None
    """The first dialect in which the tag can't change in place: a change is a replacement."""
    unlisted: frozenset[str] = frozenset()
    """Tags whose objects are in no list: without an id they can't be found again."""

    def canonical(self, value: JSON) -> JSON:
        """Return the value itself: the inner fields have types of their own."""
        return value

    @property
    def tag_field(self) -> Field:
        """The tag, as a field."""
        return Field(self.tag, Text(), required=True, fixed_since=self.fixed_since)

    def fields_of(self, value: JSON) -> tuple[Field, ...]:
        """Return the fields of the body of a value, by its tag; none for an unknown tag."""
        return self.variants.get(str(value_at(value, (self.tag,))), ())

    def field_at(self, value: JSON, path: Path) -> Field | None:
        """Return the field at a path inside a value, which says by its tag what the body has."""
        match path:
            case (name,):
                extras = (self.tag_field, *self.extras)
                return next((field for field in extras if field.name == name), None)
            case (self.body, name):
                return next((field for field in self.fields_of(value) if field.name == name), None)
        return None


@dataclass(frozen=True, slots=True)
class Field:
    """One field that files can manage.

    The schema of its kind says these, and `described.fields_of` fills them in:

    type
        How values are compared; a kind gives one where the schema can't say it.
    default
        What the server means by absent or null; `MISSING` where it means null.
    clearable
        Whether the API takes null. Where not, resetting sends `reset`, else `default`.
    secret
        Never returned by the API, so it can't be compared (docs/service.md 1.5).
    required
        Whether a create must carry it.
    since, until
        The dialects that know it.

    A kind says these:

    reset
        What to send when the key is removed from the files, if neither null nor the default.
    on_create
        Whether the create carries it.
    toggle
        The calls that change it, for a boolean with actions of its own.
    sent_with
        Fields beside it that must be in the same PATCH (docs/service.md 1.2, 1.6).
    fixed_since
        The first dialect in which it can't change in place.
    aliases
        Other names that files and servers give it.
    renamed_since
        The names that servers take since a dialect, in the order of dialects; `name` before.
    read_at
        Further places of a live body that may hold its value.
    verbatim
        Whether plans and import show it as it is written, not in the form compared.
    """

    name: str
    type: FieldType = FROM_SCHEMA
    default: JSON | Missing = MISSING
    clearable: bool = False
    reset: JSON | Missing = MISSING
    secret: bool = False
    on_create: OnCreate = OnCreate.SEND
    toggle: Toggle | None = None
    sent_with: tuple[str, ...] = ()
    fixed_since: Dialect | None = None
    aliases: tuple[str, ...] = ()
    renamed_since: Mapping[Dialect, str] = field(default_factory=dict)
    read_at: tuple[Path, ...] = ()
    required: bool = False
    verbatim: bool = False
    since: Dialect | None = None
    until: Dialect | None = None

    @property
    def variant(self) -> Variant | None:
        """Its type, where that is an object with variants."""
        return self.type if isinstance(self.type, Variant) else None

    def is_fixed(self, dialect: Dialect | None) -> bool:
        """Return whether servers of a dialect can't change it in place."""
        fixed = self.fixed_since
        return dialect is not None and fixed is not None and dialect.is_since(fixed)

    def sent_as(self, dialect: Dialect | None) -> tuple[str, ...]:
        """Return the names under which servers of a dialect take it; all where none is known.

        Servers drop top-level fields that they do not know (docs/service.md 1.1), so sending a
        name too many is harmless, and sending the wrong one alone loses the value.
        """
        if dialect is None:
            return tuple(sorted({self.name, *self.renamed_since.values()}))
        renamed = [name for first, name in self.renamed_since.items() if dialect.is_since(first)]
        return (renamed[-1] if renamed else self.name,)

    def live_value(self, body: JSONObject) -> JSON:
        """Return its value in a live body, under any of its names or places; else MISSING."""
        for path in ((self.name,), *((alias,) for alias in self.aliases), *self.read_at):
            value = value_at(body, path)
            if value is not MISSING and value is not None:
                return value
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
    """How past ranges of an object are made up for (docs/service.md 1.8).

    `paths` are tried in order until one is there. `by_date` returns whether the server wants dates
    instead of moments for an object.
    """

    paths: tuple[str, ...]
    by_date: Callable[[JSONObject, Dialect | None], bool] = _never_by_date


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
        Whether a live body is that of an object that is pending deletion (docs/service.md 4.3).
    last_changed
        The field of a live body that moves with every change, or None.
    activity
        The path inside a live body of its last activity, which distinguishes duplicates.
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
    rules: tuple[Rule, ...] = ()

    @property
    def consequences(self) -> tuple[str, ...]:
        """The ids of its rules, for `policy.deny` to name."""
        return tuple(rule.id for rule in self.rules)

    def field_named(self, name: str) -> Field | None:
        """Return the field of a name or alias."""
        for known in self.fields:
            if known.name == name or name in known.aliases:
                return known
        return None

    def field_at(self, path: Path, body: JSONObject) -> Field | None:
        """Return the field at a path of a body, None where no table knows it.

        The body says which variant the field belongs to: two variants may have a field of one name.
        """
        top = self.field_named(str(path[0]))
        if top is None or len(path) == 1:
            return top
        if top.variant is None:
            return None
        return top.variant.field_at(value_at(body, (top.name,)), path[1:])

    @property
    def variants(self) -> Iterator[tuple[Field, Variant]]:
        """The fields that have variants."""
        return ((known, known.variant) for known in self.fields if known.variant is not None)
