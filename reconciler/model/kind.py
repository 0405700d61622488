"""Kinds, created from JSON Schemas, with what they consist of: fields, variants, actions, dialects.

Generic packages name no kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.public import Term
from reconciler.model.schemas import (
    FROM_SCHEMA,
    Boolean,
    DecimalText,
    FieldType,
    Instant,
    Integer,
    IntegrationName,
    ListOf,
    OpenObject,
    Text,
    Zone,
    known_schema,
    looks_secret,
    own_properties,
    types_of,
)
from reconciler.model.values import JSON, MISSING, JSONObject, Missing, Path, mapping_of, value_at

_PLAIN: Mapping[str, FieldType] = {
    "string": Text(),
    "integer": Integer(),
    "boolean": Boolean(),
    "object": OpenObject(),
}
_FILLED_IN = frozenset({"x-initial", "x-server-keys", "x-not-imported"})
"""What schemas say of fields that servers set in new objects (service.md 4.1)."""


class Action(Term):
    """What is done to an object."""

    CREATE = "create", "Create the object, which does not exist yet."
    UPDATE = "update", "Change it in place with one PATCH."
    REPLACE = "replace", "Create a new one, then delete the old: a field can't change in place."
    PAUSE = "pause", "Pause it by a call of its own."
    UNPAUSE = "unpause", "Unpause it by a call of its own."
    DELETE = "delete", "Delete it."
    NO_OP = "no-op", "Live state matches the configuration."

    @property
    def destructive(self) -> bool:
        """Whether data or history is lost."""
        return self in (Action.DELETE, Action.REPLACE)


class Integration(Struct, frozen=True):
    """One integration."""

    id: str
    """A number."""
    kind: str
    name: str = ""
    """Unique by kind and parent, "" without one."""
    account: str = ""
    """Where it signs in, such as `AWS account 123456789012`, "" if unknown."""

    def __str__(self) -> str:
        details = ", ".join(filter(None, (self.id, self.account)))
        return f"{self.name} ({details})" if self.name else details


class Integrations(Struct, frozen=True):
    """Those of one parent."""

    items: tuple[Integration, ...] = ()
    hidden: str = ""
    """Why the key sees none, "" if it sees all of them."""

    def named(self, kind: str, name: str) -> tuple[Integration, ...]:
        """Return those of a kind with exactly this name."""
        return tuple(item for item in self.items if (item.kind, item.name) == (kind, name))

    def of_id(self, value: JSON) -> Integration | None:
        """Return that of an id, a number or its text."""
        return next((item for item in self.items if item.id == str(value)), None)


class IntegrationField(Struct, frozen=True):
    """A field that takes an integration of one kind."""

    path: Path
    kind: str
    by_text: bool = True
    """Whether text is the name of an integration."""

    def name_in(self, value: JSON) -> str | None:
        """Return the name in a configured value, None for an id and for what is neither."""
        if isinstance(value, Mapping):
            name = value.get("name")
            return name if isinstance(name, str) else None
        is_name = self.by_text and isinstance(value, str) and not value.isdigit()
        return value if is_name else None

    def written(self, integrations: Integrations, value: JSON) -> JSON:
        """Return the name of an id as a file has it here, the id itself if no name finds it."""
        item = integrations.of_id(value)
        if item is None or not item.name or len(integrations.named(item.kind, item.name)) > 1:
            return value
        return item.name if self.by_text and not item.name.isdigit() else {"name": item.name}


class Dialect(StrEnum):
    """The server versions, in order of release (docs/inside/service.md)."""

    INTERFACE = "interface"
    V2025 = "2025"
    V2026 = "2026"

    def is_since(self, first: Dialect) -> bool:
        """Return whether it is `first` or later."""
        return _AGES[self] >= _AGES[first]

    @classmethod
    @cache
    def between(cls, since: Dialect | None, until: Dialect | None) -> tuple[Dialect, ...]:
        """Return the dialects from `since` to `until`, both included. None is an open end."""
        return tuple(
            dialect
            for dialect in cls
            if (since is None or dialect.is_since(since))
            and (until is None or until.is_since(dialect))
        )


_AGES = {dialect: age for age, dialect in enumerate(Dialect)}
SINCE_2026 = Dialect.between(Dialect.V2026, None)
"""The servers of 2026 and later."""


class Toggle(Struct, frozen=True):
    """A boolean that is changed by calls of its own, never by PATCH (service.md 1.7)."""

    on: Action
    off: Action
    """Both are actions, which are POSTed to `<object>/<action>/`."""


# With a dict, since cached properties need one.
class Variant(Struct, frozen=True, dict=True):
    """An object whose inner fields depend on a tag: a destination by its type.

    `{tag: "S3", body: {...}, <extras>...}`. PATCH carries tag and extras with any part of the
    body (service.md 1.6). An unknown tag is compared as open JSON.
    """

    tag: str
    body: str
    variants: Mapping[str, tuple[Field, ...]]
    extras: tuple[Field, ...] = ()
    fixed_since: Dialect | None = None
    """The first dialect in which a change of the tag is a replacement."""
    dialects: Mapping[str, Collection[Dialect]] = field(default_factory=dict)
    """The dialects that have a tag."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """What to use instead of a tag that a dialect does not have."""
    unlisted: Mapping[str, Dialect] = field(default_factory=dict)
    """Tags whose objects are in no list, with their first dialect: they can be read by id only."""
    places: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Fields of the body that say where an object writes, by tag, and words for them."""
    outermost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The sort (`Novelty`) of a place by tag, and the parts of its text, with words as fields."""
    addressed_by: Mapping[str, str] = field(default_factory=dict)
    """The extra that may hold the address of the place instead of the body, by tag."""
    summaries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """One line about a value by tag: templates of its parts, such as `" ({region})"`."""
    integrations: Mapping[str, tuple[IntegrationField, ...]] = field(default_factory=dict)
    """The fields of a value that take an integration, by tag, with their paths in it."""

    def summary(self, value: JSON) -> str:
        """Return one line about a value, without secrets: `S3 s3://acme/web/ (eu-central-1)`.

        A part is left out if one of its fields has no value. Plain fields of the body that no
        template has follow, unless they have their default or are off. Values are not escaped.
        """
        tag, body = value_at(value, (self.tag,)), value_at(value, (self.body,))
        if tag is MISSING:
            return ""
        shown = _plain_values(body, self.fields_of(value))
        parts = self.summaries.get(str(tag))
        if parts is None:
            line = ", ".join(f"{name} {text}" for name, text in shown.items())
        else:
            known = self.named_fields_of(value)
            rest = (
                f"{name} {shown[name]}"
                for name, given in sorted(mapping_of(body).items())
                if name in shown and not any(f"{{{name}" in part for part in parts)
                if given is not False and (name not in known or given != known[name].default)
            )
            line = ", ".join(filter(None, (filled(parts, shown), *rest)))
        extras = [
            f"{extra.name} {given}"
            for extra in self.extras
            if (given := value_at(value, (extra.name,))) not in (None, MISSING)
        ]
        return ", ".join([f"{tag} {line}".rstrip(), *extras])

    def canonical(self, value: JSON) -> JSON:
        """Return the value: the inner fields have types of their own."""
        return value

    @cached_property
    def tag_field(self) -> Field:
        """The tag, as a field."""
        return Field(self.tag, Text(), required=True, fixed_since=self.fixed_since)

    def fields_of(self, value: JSON) -> tuple[Field, ...]:
        """Return the fields of the body of a value, by its tag; none for an unknown tag."""
        return self.variants.get(str(value_at(value, (self.tag,))), ())

    def named_fields_of(self, value: JSON) -> Mapping[str, Field]:
        """Return the fields of the body of a value by name."""
        return self._named_fields.get(str(value_at(value, (self.tag,))), {})

    @cached_property
    def _named_fields(self) -> Mapping[str, Mapping[str, Field]]:
        return {tag: {item.name: item for item in fields} for tag, fields in self.variants.items()}

    @cached_property
    def sent_with_secret(self) -> Mapping[str, AbstractSet[str]]:
        """The fields of any variant that are sent together with a secret, by its name."""
        partners: dict[str, set[str]] = {}
        for fields in self.variants.values():
            for item in fields:
                for name in item.sent_with:
                    partners.setdefault(name, set()).add(item.name)
        return partners

    def field_at(self, value: JSON, path: Path) -> Field | None:
        """Return the field at a path inside a value, by the tag of the value."""
        match path:
            case (name,):
                extras = (self.tag_field, *self.extras)
                return next((field for field in extras if field.name == name), None)
            case (self.body, name):
                return self.named_fields_of(value).get(str(name))
        return None


def _plain_values(body: JSON, fields: tuple[Field, ...]) -> dict[str, str]:
    """Return the scalars of a body as text by name, defaults included, without secrets."""
    secret = {field.name for field in fields if field.secret}
    values = {field.name: field.default for field in fields}
    values |= mapping_of(body)
    return {
        name: str(value)
        for name, value in values.items()
        if isinstance(value, (str, int, float)) and value != ""
        if name not in secret and not looks_secret(name)
    }


def filled(parts: Iterable[str], values: Mapping[str, str]) -> str:
    """Return templates with their fields filled in, without those of which one has no value."""
    text = ""
    for part in parts:
        with suppress(KeyError):
            text += part.format_map(values)
    return text


class Field(Struct, frozen=True):
    """A managed field.

    The schema of its kind sets `type`, `default`, `clearable`, `secret`, `required`, `since`,
    `until`, `accepts`, `empty_is_null` and `null_in_create` (`kind_of`), and a kind the others.
    """

    name: str
    type: FieldType = FROM_SCHEMA
    """How values are compared. A kind sets it if the schema cannot express it."""
    default: JSON | Missing = MISSING
    """The meaning of absent or null for the server; `MISSING` for null."""
    clearable: bool = False
    """Whether the API accepts null. If not, resetting sends `reset`, else `default`."""
    reset: JSON | Missing = MISSING
    """The value to send when the key is removed from the files, if neither null nor the default:
    that of the kind, or the initial value of new objects."""
    secret: bool = False
    """Never returned by the API, so it cannot be compared (service.md 1.5)."""
    after_create: bool = False
    """Whether it is sent by PATCH after a create, which refuses or overwrites it."""
    toggle: Toggle | None = None
    """The calls that change it, for a boolean with actions of its own."""
    sent_with: tuple[str, ...] = ()
    """Fields beside it that must be in the same PATCH (service.md 1.2, 1.6)."""
    resets: Mapping[str, str] = field(default_factory=dict)
    """Fields beside it that a PATCH without them resets, each with the field whose change ends the
    meaning of its live value."""
    fixed_since: Dialect | None = None
    """The first dialect in which it cannot change in place."""
    aliases: tuple[str, ...] = ()
    """Other names of it in files and servers."""
    renamed_since: Mapping[Dialect, str] = field(default_factory=dict)
    """The names that servers accept since a dialect, in the order of dialects; `name` before."""
    read_at: tuple[Path, ...] = ()
    """Other paths of a live body that may have its value."""
    required: bool = False
    """Whether a create must contain it."""
    verbatim: bool = False
    """Whether plans and import show it as written, not in canonical form. So is a time zone."""
    since: Dialect | None = None
    """The first dialect that has it, None for an open end."""
    until: Dialect | None = None
    """The last one."""
    accepts: Mapping[Dialect, Sequence[JSON]] = field(default_factory=dict)
    """The only values that servers of a dialect accept, if they do not accept all."""
    empty_is_null: bool = False
    """Whether an empty list or mapping means the same as null to the server."""
    null_in_create: bool = False
    """Whether a create sends null: without the field, the server gives new objects a value."""

    @property
    def variant(self) -> Variant | None:
        """Its type, if that is a variant."""
        return self.type if isinstance(self.type, Variant) else None

    def has(self, dialect: Dialect) -> bool:
        """Return whether servers of a dialect have it."""
        return dialect in Dialect.between(self.since, self.until)

    def is_fixed(self, dialect: Dialect | None) -> bool:
        """Return whether servers of a dialect cannot change it in place."""
        fixed = self.fixed_since
        return dialect is not None and fixed is not None and dialect.is_since(fixed)

    def sent_as(self, dialect: Dialect | None) -> tuple[str, ...]:
        """Return the names that servers of a dialect accept; all names for an unknown dialect.

        Servers drop unknown top-level fields (service.md 1.1): an extra name is harmless, and
        a wrong name alone loses the value.
        """
        if dialect is None:
            return tuple(sorted({self.name, *self.renamed_since.values()}))
        renamed = [name for first, name in self.renamed_since.items() if dialect.is_since(first)]
        return (renamed[-1] if renamed else self.name,)

    def live_value(self, body: JSONObject) -> JSON:
        """Return its value in a live body, under any of its names or paths, or MISSING."""
        value = body.get(self.name, MISSING)
        if value is not MISSING and value is not None:
            return value
        if self.aliases or self.read_at:
            for path in (*((alias,) for alias in self.aliases), *self.read_at):
                other = value_at(body, path)
                if other is not MISSING and other is not None:
                    return other
        return value


class Paths(Struct, frozen=True):
    """The URL paths of a kind. `model/live.py` fills in `{organization}` and `{parent}`."""

    collection: str
    """Lists and creates; an object is `<collection><id>/`."""
    survey: str | None = None
    """Lists all objects of an organization, and is used for those without a parent."""
    integrations: str = ""
    """Lists those of a parent."""


class Kind(Struct, frozen=True, dict=True):
    """One kind of resource."""

    name: str
    """`batch_export` in addresses."""
    collection: str
    """`batch_exports`, as the map in files and file names."""
    paths: Paths
    fields: tuple[Field, ...]
    parent: str | None = None
    """The kind whose objects contain these, or None."""
    parent_key: str | None = None
    """The YAML key of the parent ("project")."""
    parent_field: str | None = None
    """The field of a live body with the parent's id ("team_id"), None if bodies do not have it:
    then `paths` has no survey."""
    unique_names: bool = False
    """Whether the server refuses two objects with the same name and parent."""
    deletion_switch: str | None = None
    """The policy key that must be true before any object of this kind is deleted."""
    detail: bool = False
    """Whether lists have a short form, so that managed objects are read one by one."""
    stamp: str = ""
    """The field of a live body in which two objects differ that had the same id, one after the
    other: a service that is restored from a backup gives ids again."""
    deleted_by: JSONObject | None = None
    """The fields that a PATCH sets to delete an object, None if DELETE does it."""
    deleted_in_steps: tuple[Dialect, ...] = ()
    """The dialects that delete what an object contained before, too, by one request for each of
    them, which is answered with 500 (service.md 4.3)."""
    features: Mapping[str, str] = field(default_factory=dict)
    """By dialect, the paid feature of the organization that writes need (service.md 1.1)."""
    pending_deletion: Callable[[JSONObject], bool] = lambda _: False
    """Return whether an object is pending deletion (service.md 4.3)."""
    dialect_of: Callable[[JSONObject], Dialect | None] = lambda _: None
    """Return the dialect of the server that returned an object, None if unknown."""
    integration_of: Callable[[JSONObject], Integration | None] = lambda _: None
    """Return the integration in a member of the list `paths.integrations`, None for other kinds."""
    activity: Path = ()
    """The path inside a live body of its last activity, which distinguishes duplicates."""
    page: str = ""
    """The path of an object's page on the service, with `{parent}` and `{id}`; "" if unknown."""

    def is_deleted(self, body: JSONObject) -> bool:
        """Return whether a readable object is deleted, or pending deletion."""
        marks = self.deleted_by or {}
        is_marked = bool(marks) and all(body.get(name) == value for name, value in marks.items())
        return is_marked or self.pending_deletion(body)

    def field_named(self, name: str) -> Field | None:
        """Return the field of a name or alias."""
        return self._fields_by_name.get(name)

    def own_name(self, name: str) -> str:
        """Return the name of a field that a dialect or a file may call otherwise."""
        field = self.field_named(name)
        return field.name if field is not None else name

    def toggled(self, action: Action) -> tuple[Field, bool] | None:
        """Return the field that an action sets and its value, None for another action."""
        for item in self.fields:
            if item.toggle is not None and action in (item.toggle.on, item.toggle.off):
                return item, action is item.toggle.on
        return None

    def toggled_to(self, path: Path, value: JSON) -> Iterator[Action]:
        """Yield the action that sets the toggle at a path to a value."""
        field = self.field_named(str(path[0]))
        if field is not None and field.toggle is not None:
            yield field.toggle.on if value else field.toggle.off

    @cached_property
    def _fields_by_name(self) -> Mapping[str, Field]:
        return {name: item for item in self.fields for name in (item.name, *item.aliases)}

    @cached_property
    def names_sent(self) -> Mapping[str, str]:
        """The names of its fields by every name that they have in bodies of requests."""
        return {name: item.name for item in self.fields for name in item.sent_as(None)}

    def field_at(self, path: Path, body: JSONObject) -> Field | None:
        """Return the field at a path of a body, None if unknown.

        The body selects the variant, since variants may have different fields of the same name.
        """
        top = self.field_named(str(path[0]))
        if top is None or len(path) == 1:
            return top
        if top.variant is None:
            return None
        return top.variant.field_at(value_at(body, (top.name,)), path[1:])

    def is_stale(self, path: Path, body: JSONObject) -> bool:
        """Return whether a known variant does not define a field (service.md, 15.12)."""
        field = self.field_named(str(path[0]))
        if field is None or field.variant is None or len(path) != 3:
            return False
        variant = field.variant.variants.get(str(value_at(body, (field.name, field.variant.tag))))
        return variant is not None and path[2] not in {inner.name for inner in variant}

    def integration_fields(self, body: JSONObject) -> Iterator[tuple[Path, IntegrationField]]:
        """Yield the paths of a body that take an integration, by the tags of its variants."""
        for item, variant in self.variants:
            tag = value_at(body, (item.name, variant.tag))
            for taken in variant.integrations.get(tag, ()) if variant.integrations else ():
                yield (item.name, *taken.path), taken

    @property
    def integration_paths(self) -> frozenset[Path]:
        """The paths that take an integration in any variant."""
        return frozenset(
            (item.name, *taken.path)
            for item, variant in self.variants
            for fields in variant.integrations.values()
            for taken in fields
        )

    @cached_property
    def variants(self) -> tuple[tuple[Field, Variant], ...]:
        """The fields that have variants."""
        return tuple((item, item.variant) for item in self.fields if item.variant is not None)


def containers(kinds: Iterable[Kind]) -> frozenset[str]:
    """Return the names of the kinds whose objects contain others."""
    return frozenset(kind.parent for kind in kinds if kind.parent is not None)


def kind_of(name: str, special: Collection[Field] = ()) -> Kind:
    """Return the kind of a schema with `x-kind`. `special` fields have more than the schema."""
    node, properties = known_schema(name), own_properties(name)
    words = dict(node["x-kind"])
    fields = _fields(node, properties, special, leave_out=(words.get("parent_key"),))
    steps = tuple(map(Dialect, words.pop("deleted_in_steps", ())))
    paths = Paths(**words.pop("paths"))
    return Kind(name=name, paths=paths, fields=fields, deleted_in_steps=steps, **words)


def variant_of(
    name: str,
    field: str,
    special: Collection[Field] = (),
    **parts: Any,
) -> Variant:
    """Return the type of a field with `x-variants`, with the fields of each variant.

    `parts` are attributes of the variant that its schema does not have.
    """
    node = known_schema(name)["properties"][field]
    words = node["x-variants"]
    tag, body = words["tag"], words["body"]
    schemas = {
        variant: known_schema(f"{words['folder']}/{variant}")
        for variant in node["properties"][tag]["x-open-enum"]
    }
    return Variant(
        tag,
        body,
        {name: _fields(inner, inner["properties"], special) for name, inner in schemas.items()},
        dialects={
            name: Dialect.between(_dialect(inner.get("x-since")), _dialect(inner.get("x-until")))
            for name, inner in schemas.items()
        },
        instead={n: inner["x-instead"] for n, inner in schemas.items() if "x-instead" in inner},
        extras=_fields(node, node["properties"], (), leave_out=(tag, body)),
        **parts,
    )


def _fields(
    node: Mapping[str, Any],
    properties: Mapping[str, Any],
    special: Collection[Field],
    *,
    leave_out: Sequence[str | None] = (),
) -> tuple[Field, ...]:
    known = {field.name: field for field in special}
    aliases = {alias for field in special for alias in field.aliases}
    needed = {*node.get("required", ()), *node.get("x-required-unless", ())}
    return tuple(
        _described(known.get(name, Field(name)), below, required=name in needed)
        for name, below in properties.items()
        if name not in leave_out and name not in aliases
    )


def _described(field: Field, node: Mapping[str, Any], *, required: bool) -> Field:
    # Null means the default to some servers, and others refuse it (service.md 1.1).
    clearable = "null" in types_of(node) and not node.get("x-null-is-default")
    return replace(
        field,
        type=_type_of(node) if field.type is FROM_SCHEMA else field.type,
        # An initial value of new objects is not what absent means.
        default=MISSING if node.get("x-initial-only") else node.get("default", MISSING),
        reset=node["default"] if node.get("x-initial-only") else field.reset,
        clearable=clearable,
        secret=bool(node.get("x-secret")),
        required=required,
        verbatim=field.verbatim or bool(node.get("x-zone")),
        since=_dialect(node.get("x-since")),
        until=_dialect(node.get("x-until")),
        accepts=_accepted(node.get("x-accepts", {})),
        empty_is_null=bool(node.get("x-empty-is-null")),
        null_in_create=clearable and not _FILLED_IN.isdisjoint(node),
    )


def _accepted(given: Mapping[str, Sequence[JSON] | None]) -> Mapping[Dialect, Sequence[JSON]]:
    """Return the only values of each dialect: a newer one has those before it, null lifts them."""
    accepted, last = {}, None
    for dialect in Dialect:
        last = given.get(dialect, last)
        if last is not None:
            accepted[dialect] = last
    return accepted


def _dialect(name: str | None) -> Dialect | None:
    return Dialect(name) if name is not None else None


def _type_of(node: Mapping[str, Any]) -> FieldType:
    if node.get("format") == "date-time":
        return Instant()
    if node.get("x-rate"):
        return DecimalText()
    if node.get("x-zone"):
        return Zone()
    if node.get("x-integration"):
        return IntegrationName()
    types = [name for name in types_of(node) if name != "null"]
    if types == ["array"]:
        items = node.get("items", {})
        return ListOf(Text()) if items.get("type") == "string" else OpenObject()
    return _PLAIN[types[0]] if len(types) == 1 else OpenObject()
