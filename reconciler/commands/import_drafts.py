"""Make the resource that import writes for a live object: values, secrets, what is left out.

What the schemas say for import is in `x-credentials`, `x-initial`, `x-not-imported`,
`x-server-item` and `x-server-keys`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, count, takewhile
from typing import Any, TypeAlias

from msgspec import Struct, field

from reconciler.commands.import_choice import Adoption, ImportContext
from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Level, Mark
from reconciler.editing.editing import Edit
from reconciler.editing.yaml_text import reads_back
from reconciler.files.field_checks import check_fields
from reconciler.files.layers import COMMON, laid_over
from reconciler.files.loading import Loaded
from reconciler.files.references import escaped
from reconciler.files.validation import CheckContext, check
from reconciler.files.yaml_document import Document
from reconciler.kinds import kinds_by_name
from reconciler.model.kind import Dialect, Integrations, Kind
from reconciler.model.live import LiveObject
from reconciler.model.public import Public
from reconciler.model.run import may_be_by_service
from reconciler.model.schemas import (
    MergedObject,
    canonical_text,
    holds_secret,
    looks_secret,
    member_schema,
    schema,
    variant_schema,
)
from reconciler.model.settings import UNKNOWN_VALUE
from reconciler.model.values import (
    JSON,
    MISSING,
    Address,
    JSONObject,
    Path,
    SecretRef,
    leaves,
    path_text,
    put_at,
    secret_refs,
    value_at,
)
from reconciler.planning.compare import comparable, field_leaves, is_default, written_value
from reconciler.planning.integrations import named
from reconciler.providers.env import SECRET_PREFIX

LOOKS_SECRET = "what looks like a secret"  # noqa: S105 - a message
Account: TypeAlias = tuple[str, ...]
_IN_BODY = 3
"""The length of the path of a field in the body of a variant."""
_PAUSED: Mapping[Path, str] = {
    ("paused",): "the service may have paused it after failures: fix the cause, then unpause it"
}
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9]+")


class LiveName(Public, frozen=True):
    """A live object, by its name."""

    kind: str
    id: str
    name: str

    @classmethod
    def of(cls, live: LiveObject) -> LiveName:
        """Return the name of an object."""
        return cls(live.kind, live.id, live.name)


class Left(LiveName, frozen=True):
    """A live object or one of its fields that is not imported."""

    optional = frozenset({"field"})

    why: str
    field: str = ""
    """The field, absent for the object."""


def left_out(live: LiveObject, path: Path, why: str) -> Left:
    """Return what is left out of an object: a field, or the object if the path is empty."""
    return Left(live.kind, live.id, live.name, why, path_text(path))


class NeededSecret(Public, frozen=True):
    """An environment variable to set, and the resource that needs it."""

    variable: str
    address: Address


class Drafting(Struct):
    """The edits that add resources, what they leave out, and the secrets that they refer to.

    `loaded` are the existing files: their variables are not used again. `dropped` are fields to
    leave out, with the reason. `written` are the new resources with their files, `variables` those
    in use, `shared` those of accounts. `warnings` are about values of `written`.
    """

    context: ImportContext
    loaded: Loaded
    dropped: Mapping[Address, Mapping[Path, str]]
    edits: list[tuple[Document, Edit]] = field(default_factory=list)
    texts: Mapping[str, str] = field(default_factory=dict)
    written: dict[Address, tuple[Adoption, str]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    secrets: list[NeededSecret] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    shared: dict[Account, SecretRef] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()

    def __post_init__(self) -> None:
        for address, resource in self.loaded.desired.resources.items():
            for path, ref in secret_refs(resource.spec):
                self.variables |= {source.argument for source in ref.sources}
                account = self._account(kinds_by_name()[address.kind], resource.spec, path)
                if account and not ref.is_literal:
                    self.shared.setdefault(account, ref)

    def _account(self, kind: Kind, values: JSONObject, path: Path) -> Account | None:
        return account_of(kind, values, path) if self.context.share_secrets else None

    def draft(self, adoption: Adoption, document: Document) -> None:
        """Add the resource of an object to a file, unless no file can contain it."""
        kind, address = adoption.kind, adoption.address
        parent_key = adoption.parent.key if adoption.parent is not None else None
        parent = Address(kind.parent, parent_key) if kind.parent and parent_key else None
        if parent and parent not in self.written and parent not in self.loaded.declared:
            self.leave(adoption, (), f"its {kind.parent} is not imported")
            return
        defaults = self.loaded.defaults_in(document.file).get(kind.name, {})
        defaults = _applying(kind, defaults, adoption.live.body)
        values = {**self._identity(adoption, defaults), **self._values(adoption, defaults)}
        if self.context.environment:
            values["environments"] = [self.context.environment]
        left_out, fits = _left_out(kind, values, defaults=defaults, subject=str(address))
        if not fits:
            reasons = (
                f"{path_text(path)}: {why}" if path else why for path, why in left_out.items()
            )
            self.leave(adoption, (), "; ".join(reasons))
            return
        for path, reason in left_out.items():
            self.leave(adoption, path, reason)
        for _, ref in secret_refs(values):
            self.secrets += [NeededSecret(source.argument, address) for source in ref.sources]
        self.edits.append((document, Edit((kind.collection, address.key), escaped(values))))
        self.written[address] = (adoption, document.file)

    def _values(self, adoption: Adoption, defaults: JSONObject) -> dict[str, JSON]:
        """Return the fields to write, with secrets as references."""
        kind, live = adoption.kind, adoption.live
        table = self.context.live.integrations.get(live.parent_id or "", Integrations())
        body = named(kind, live.body, table)
        values, stale = _managed_fields(kind, body, self.context.live.dialect, defaults)
        merged = laid_over(defaults, values)
        for path in secret_paths(kind, merged, body):
            if value_at(defaults, path) is MISSING:
                put_at(values, path, self._reference(adoption, path, merged))
            else:
                remove(values, path)
        # Fields that look secret are not among the values, and are reported.
        returned = {
            field.name: body[field.name] for field, _ in kind.variants if field.name in body
        }
        resource = self.loaded.desired.resources.get(adoption.address)
        declared = resource is not None and resource.spec.get("paused") is True
        left_out = {
            **(_PAUSED if may_be_by_service(body, declared=declared) else {}),
            **dict.fromkeys(stale, "this type of destination no longer has this field"),
            **self.dropped.get(adoption.address, {}),
            **dict(doubtful_paths(kind, {**values, **returned})),
        }
        for path in left_out:
            remove(values, path)
        for path in list(self._pasted_secrets(kind, values)):
            left_out[path] = "it contains the value of a secret of this workspace"
            remove(values, path)
        for path, reason in left_out.items():
            self.leave(adoption, path, reason)
        return values

    def _reference(self, adoption: Adoption, path: Path, values: JSONObject) -> SecretRef:
        account = self._account(adoption.kind, values, path)
        if account in self.shared:
            return self.shared[account]
        variable = variable_for(
            account[1] if account else adoption.address.key, path, self.variables
        )
        self.variables.add(variable)
        made = SecretRef.of("env", variable)
        if account is not None:
            self.shared[account] = made
        return made

    def leave(self, adoption: Adoption, path: Path, reason: str) -> None:
        """Note what is left out: a field, or the object if the path is empty."""
        self.left.append(left_out(adoption.live, path, reason))

    def _identity(self, adoption: Adoption, defaults: JSONObject) -> dict[str, JSON]:
        """Return what identifies the object besides its name."""
        values: dict[str, JSON] = {}
        name, ref = adoption.kind.parent_key, adoption.parent
        if name is not None and ref is not None:
            parent: JSON = ref.key or {"name": ref.name}
            if ref.id is not None:
                parent = {"id": _written_id(ref.id)}
            if defaults.get(name) != parent:
                values[name] = parent
        if adoption.pinned:
            values["id"] = _written_id(adoption.live.id)
        return values

    def _pasted_secrets(self, kind: Kind, values: JSONObject) -> Iterator[Path]:
        for path, text in leaves(values):
            if isinstance(text, str) and self.context.mask(text) != text:
                # An item of a list can't be left out alone: the whole list is.
                names = takewhile(lambda part: isinstance(part, str), path)
                yield _whole(kind, tuple(names))


def _applying(kind: Kind, defaults: JSONObject, body: JSONObject) -> JSONObject:
    """Return the defaults for a live object, without those of another type of destination."""
    tags = [(holder.name, variant.tag) for holder, variant in kind.variants]
    replaced = {
        path[0] for path in tags if value_at(defaults, path) not in (MISSING, value_at(body, path))
    }
    return {name: value for name, value in defaults.items() if name not in replaced}


def _written_id(identity: str) -> JSON:
    """Return decimal ids as numbers, as the service shows them."""
    return int(identity) if identity.isdecimal() else identity


def account_of(kind: Kind, values: JSONObject, path: Path) -> Account | None:
    """Return what a secret signs in to, as far as the service shows it: its field comes last.

    The parts are those of `x-account` in the schema of the destination, the first one not empty.
    None for a secret without an account, such as one of another bucket for intermediate files.
    """
    node = (schema(kind.name) or {})["properties"].get(path[0], {})
    if "x-variants" not in node or len(path) != _IN_BODY:
        return None
    words, body = node["x-variants"], value_at(values, path[:-1])
    tag = value_at(values, (path[0], words["tag"]))
    parts = variant_schema(words, tag).get("x-account", ())
    if parts and isinstance(body, dict) and body.get(parts[0]):
        return str(tag), *(str(body.get(part, "")) for part in parts), str(path[-1])
    return None


def variable_for(key: str, path: Path, taken: AbstractSet[str]) -> str:
    """Return an unused environment variable for a secret of a resource.

    One such as RECONCILER_SECRET_LAKE_PASSWORD needs no entry in `secrets:`.
    """
    plain = SECRET_PREFIX + _NOT_A_NAME.sub("_", f"{key}_{path[-1]}").upper().strip("_")
    names = chain((plain,), (f"{plain}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _managed_fields(
    kind: Kind, body: JSONObject, dialect: Dialect | None, defaults: JSONObject
) -> tuple[dict[str, JSON], Sequence[Path]]:
    """Return the fields of a live body to write, and paths that the server no longer accepts.

    They lack secrets, what the server maintains, initial values, and what the defaults of the
    server or of the workspace give. A missing value that a default of the workspace sets otherwise
    is written as null, or as the server's default.
    """
    values: dict[str, JSON] = {}
    stale: list[Path] = []
    given = _given(kind, defaults)
    tags = {(holder.name, variant.tag) for holder, variant in kind.variants}
    present: set[Path] = set()
    for leaf in field_leaves(kind.fields, body, live=True):
        if len(leaf.path) > 1:
            until = leaf.field.until
            outdated = until and dialect and not until.is_since(dialect)
            if outdated or kind.is_stale(leaf.path, body):
                stale.append(leaf.path)
                continue
        present.add(leaf.path)
        value = written_value(leaf.field, leaf.value)
        compared = comparable(leaf.field, value)
        if leaf.path in given and leaf.path not in tags:
            is_written = compared != comparable(leaf.field, given[leaf.path])
        else:
            is_empty = is_default(leaf.field, value) or compared == {}
            is_written = leaf.path in given or leaf.field.required or not is_empty
        if is_written:
            put_at(values, leaf.path, value)
    for path, absent in _absent(kind, body, {it: given[it] for it in given.keys() - present}):
        put_at(values, path, absent)
    for holder, variant in kind.variants:
        if isinstance(values.get(holder.name), dict):
            values[holder.name].setdefault(variant.body, {})
    return _without_filled_in(kind, values, given.keys()), stale


def _absent(
    kind: Kind, body: JSONObject, given: Mapping[Path, JSON]
) -> Iterator[tuple[Path, JSON]]:
    """Yield what to write for paths without a live value that a default of the workspace sets."""
    for path in sorted(given, key=str):
        field = kind.field_at(path, body)
        if field is None or field.secret or (field.default is MISSING and not field.clearable):
            continue
        if comparable(field, None) != comparable(field, given[path]):
            yield path, None if field.default is MISSING else field.default


def _given(kind: Kind, defaults: JSONObject) -> dict[Path, JSON]:
    """Return the values of defaults by their paths, with the kind's own names for fields."""
    named = {kind.own_name(name): value for name, value in defaults.items()}
    return {leaf.path: leaf.value for leaf in field_leaves(kind.fields, named, live=False)}


def _without_filled_in(
    kind: Kind, values: JSONObject, explicit: AbstractSet[Path]
) -> dict[str, JSON]:
    """Return the fields without those that the server maintains and those at initial values."""
    properties = (schema(kind.name) or {}).get("properties", {})
    kept: dict[str, JSON] = {}
    for name, value in values.items():
        node = properties.get(name, {})
        initial = [canonical_text(node[word]) for word in ("default", "x-initial") if word in node]
        own = node.get("x-server-keys", ())
        if own and isinstance(value, dict):
            value = {key: item for key, item in value.items() if key not in own}  # noqa: PLW2901
        is_filled_in = (
            "x-not-imported" in node
            or (own and value == {})
            or (initial and canonical_text(value) in initial)
            or ("x-server-item" in node and _is_server_item(value, node["x-server-item"]))
        )
        if not is_filled_in or (name,) in explicit:
            kept[name] = value
    return kept


def _is_server_item(value: JSON, item: JSONObject) -> bool:
    """Return whether a list contains only what the server adds: an item with these members."""
    return (
        isinstance(value, list)
        and len(value) == 1
        and isinstance(value[0], dict)
        and item.items() <= value[0].items()
    )


def doubtful_paths(kind: Kind, values: JSONObject) -> list[tuple[Path, str]]:
    """Return what looks like a secret by its name or value, with the reason.

    The schemas mark secrets among their own fields. Below an open field, and in types of newer
    servers, only the name is left to go by.
    """
    doubtful = _doubtful(schema(kind.name) or {}, dict(values), ())
    return [(_whole(kind, path), reason) for path, reason in doubtful]


def _doubtful(
    node: Mapping[str, Any] | None, value: JSON, path: Path
) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        if holds_secret(value):
            yield path, f"it contains {LOOKS_SECRET}"
    elif isinstance(value, list):
        below = (node or {}).get("items")
        # An item of a list can't be left out alone: the whole list is.
        yield from ((path, reason) for item in value for _, reason in _doubtful(below, item, path))
    elif isinstance(value, dict):
        for name, item in value.items():
            below = member_schema(node or {}, value, name)
            if below is None and item is not None and looks_secret(name):
                yield (*path, name), "its name looks like that of a secret"
            else:
                yield from _doubtful(below, item, (*path, name))


def secret_paths(kind: Kind, values: JSONObject, body: JSONObject) -> list[Path]:
    """Return the secrets that a live object must have though the API hides them, in a fixed order.

    `values` are the fields to write. A secret that an old server returns in `body` is included.
    """
    returned = [
        (field.name,) for field in kind.fields if field.secret and body.get(field.name) is not None
    ]
    return [*returned, *_below(schema(kind.name) or {}, values, ())]


def _below(
    node: Mapping[str, Any], value: JSON, path: Path, *, is_connected: bool = False
) -> Iterator[Path]:
    """Yield the secrets of a value. `is_connected`: an integration has its credentials."""
    if not isinstance(value, dict):
        return
    if node.get("x-holds-secrets"):
        properties = node.get("properties", {}).items()
        yield from ((*path, name) for name, below in properties if below.get("x-secret"))
    for name in () if is_connected else _credentials(node, value):
        if name not in value:
            yield (*path, name)
    unless = node.get("x-variants", {}).get("unless")
    for name, item in value.items():
        below = member_schema(node, value, name) or {}
        connected = value.get(unless) is not None
        yield from _below(below, item, (*path, name), is_connected=connected)


def _credentials(node: Mapping[str, Any], body: Mapping[str, Any]) -> list[str]:
    """Return the secret fields of the authentication that a config uses."""
    properties = node.get("properties", {})
    names: list[str] = []
    for method in node.get("x-credentials", ()):
        used = all(
            body.get(name, properties.get(name, {}).get("default")) == wanted
            for name, wanted in method.get("when", {}).items()
        )
        names += [name for name in method["fields"] if used and name not in names]
    return names


def _left_out(
    kind: Kind, values: dict[str, JSON], *, defaults: JSONObject, subject: str
) -> tuple[Mapping[Path, str], bool]:
    """Remove once what no file can contain, such as a key with `${` or a value out of range.

    Return what is removed with the reason, and whether a file can contain the rest. Servers have
    old values that they would refuse today.
    """
    left_out = {
        _whole(kind, leaf.path): "it can't be written in strict YAML"
        for leaf in field_leaves(kind.fields, values, live=False)
        if not reads_back({str(leaf.path[-1]): leaf.value})
    }
    for path in left_out:
        remove(values, path)
    errors: dict[Path, str] = {}
    for path, reason in _errors(kind, values, defaults, subject):
        errors.setdefault(_whole(kind, path), reason)
    removed = [remove(values, path) for path in errors]
    fits = all(removed) and not (errors and _errors(kind, values, defaults, subject))
    return {**left_out, **errors}, fits


def _whole(kind: Kind, path: Path) -> Path:
    """Return the smallest part that can be left out: what the service replaces whole."""
    field = kind.field_named(str(path[0])) if path else None
    if field is None:
        return path
    if field.variant is not None:
        return path[:3]
    levels = field.type.depth if isinstance(field.type, MergedObject) else 0
    return path[: 1 + levels]


def _errors(
    kind: Kind, values: JSONObject, defaults: JSONObject, subject: str
) -> list[tuple[Path, str]]:
    """Return the paths and the messages of the errors of a resource."""
    places: list[Path] = []

    def place(path: Path) -> Mark:
        places.append(path)
        return Mark("", len(places))

    collector = DiagnosticCollector(lenient=frozenset({UNKNOWN_VALUE}))
    context = CheckContext(subject, place, place, collector)
    merged = laid_over(defaults, values)
    check(kind.name, merged, context)
    spec = {name: value for name, value in merged.items() if name not in {*COMMON, kind.parent_key}}
    check_fields(kind, spec, context)
    return [
        (places[item.at.line - 1] if item.at is not None else (), item.message)
        for item in collector.diagnostics
        if item.level is Level.ERROR
    ]


def remove(values: dict[str, JSON], path: Path) -> bool:
    """Remove a field, or the list that contains it. Return False if neither exists."""
    holder: JSON = values
    for depth, part in enumerate(path, 1):
        if part not in holder:
            return False
        # An item of a list can't be left out alone: the whole list is.
        if depth == len(path) or not isinstance(holder[part], dict):
            del holder[part]
            return True
        holder = holder[part]
    return False
