"""What a live object becomes in a file: secrets as references, and only what files can hold.

Comes after the choice of fields (`planning.adopting`), before the text (`drafts`). What the
schemas say for import is read here: `x-credentials`, `x-not-imported`, `x-server-keys`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from reconciler.authoring.yaml_text import reads_back
from reconciler.errors import Diagnostic, DiagnosticCollector, Mark, Severity
from reconciler.model.field_types import MergedObject, canonical_text
from reconciler.model.kind import Kind
from reconciler.model.redaction import holds_secret, looks_secret
from reconciler.model.schema_files import member_schema, schema, variant_schema
from reconciler.model.values import JSON, MISSING, JSONObject, Path, value_at
from reconciler.workspace.checks.values import check_fields
from reconciler.workspace.layers import COMMON, laid_over
from reconciler.workspace.schema.validation import Checked, check

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9]+")


@dataclass(slots=True)
class SecretNames:
    """Gives each secret an environment variable of its own, such as LAKE_PASSWORD."""

    taken: set[str] = field(default_factory=set)

    def name_for(self, key: str, path: Path) -> str:
        """The name for a secret of the resource with a key."""
        plain = _NOT_A_NAME.sub("_", f"{key}_{path[-1]}").upper().strip("_")
        plain = plain if not plain[:1].isdigit() else f"SECRET_{plain}"
        name, number = plain, 1
        while name in self.taken:
            number += 1
            name = f"{plain}_{number}"
        self.taken.add(name)
        return name


def without_unimportable(
    kind: Kind, values: JSONObject, *, explicit: AbstractSet[Path] = frozenset()
) -> dict[str, JSON]:
    """The fields without those that import leaves to the server, and without keys of its own.

    What is as the server has it from the start says nothing, and is left out as well.
    """
    properties = (schema(kind.name) or {}).get("properties", {})
    kept: dict[str, JSON] = {}
    for name, value in values.items():
        node = properties.get(name, {})
        initial = "default" in node and canonical_text(value) == canonical_text(node["default"])
        if ("x-not-imported" in node or initial) and (name,) not in explicit:
            continue
        own = node.get("x-server-keys", ())
        if own and isinstance(value, dict):
            value = {key: item for key, item in value.items() if key not in own}  # noqa: PLW2901
            if not value and (name,) not in explicit:
                continue
        kept[name] = value
    return kept


def doubtful_paths(kind: Kind, values: JSONObject) -> list[tuple[Path, str]]:
    """Return what looks like a secret by its name or value, and why.

    The schemas say of their own fields which are secrets. They know nothing of what is below an
    open field or in the body of a type that newer servers have: there a name is all there is.
    """
    doubtful = list(_doubtful(schema(kind.name) or {}, dict(values), ()))
    return [(_whole(kind, path), why) for path, why in doubtful]


def _doubtful(
    node: Mapping[str, Any] | None, value: JSON, path: Path
) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        if holds_secret(value):
            yield path, "it holds what looks like a secret"
    elif isinstance(value, list):
        below = (node or {}).get("items")
        # A part of a list can't be left out: then the list is.
        yield from ((path, why) for item in value for _, why in _doubtful(below, item, path))
    elif isinstance(value, dict):
        for name, item in value.items():
            below = member_schema(node or {}, value, name)
            if below is None and item is not None and looks_secret(name):
                yield (*path, name), "its name is like that of a secret"
            else:
                yield from _doubtful(below, item, (*path, name))


def secret_paths(kind: Kind, values: JSONObject, body: JSONObject) -> list[Path]:
    """Secrets that a live object must have, though no answer shows them, in a fixed order.

    `values` are the fields as they will be written, `body` what was read: a secret that an old
    server still shows is one too.
    """
    shown = [
        (known.name,) for known in kind.fields if known.secret and body.get(known.name) is not None
    ]
    return [*shown, *_below(schema(kind.name) or {}, values, ())]


def _below(node: Mapping[str, Any], value: JSON, path: Path) -> Iterator[Path]:
    if not isinstance(value, dict):
        return
    properties = node.get("properties", {})
    for name, below in properties.items():
        if node.get("x-holds-secrets") and below.get("x-secret"):
            yield (*path, name)
        elif name in value:
            yield from _below(below, value[name], (*path, name))
    variants = node.get("x-variants")
    if variants is None:
        return
    inner = variant_schema(variants, value.get(variants["tag"]))
    body = value.get(variants["body"])
    inside = (*path, variants["body"])
    if value.get(variants["unless"]) is None and isinstance(body, dict):
        for name in _credentials(inner, body):
            if name not in body:
                yield (*inside, name)
    yield from _below(inner, body, inside)


def _credentials(node: Mapping[str, Any], body: Mapping[str, Any]) -> list[str]:
    """The fields of the way to sign in that a config has chosen."""
    properties = node.get("properties", {})
    names: list[str] = []
    for way in node.get("x-credentials", ()):
        chosen = all(
            body.get(name, properties.get(name, {}).get("default")) == wanted
            for name, wanted in way.get("when", {}).items()
        )
        names += [name for name in way["fields"] if chosen and name not in names]
    return names


@dataclass(frozen=True, slots=True)
class Fitting:
    """The fields that a file can hold. `values` is None if it can't hold the resource.

    `left_out` are the others: a path and a reason for each.
    """

    values: dict[str, JSON] | None
    left_out: tuple[tuple[Path, str], ...]


def fitting(kind: Kind, values: JSONObject, *, defaults: JSONObject, subject: str) -> Fitting:
    """Leave out what no file may say, such as a key that holds `${` or a value out of range.

    Servers hold values that they would refuse today. What is left out is not managed.
    """
    kept: dict[str, JSON] = copy.deepcopy(dict(values))
    left_out: list[tuple[Path, str]] = []
    for name in [name for name in kept if not reads_back({name: kept[name]})]:
        for path in _unreadable(kept[name], (name,)):
            remove(kept, _whole(kind, path))
            left_out.append((_whole(kind, path), "it can't be written in strict YAML"))
    while refused := _refused(kind, kept, defaults, subject):
        path, diagnostic = _whole(kind, refused[0][0]), refused[0][1]
        left_out.append((path, diagnostic.message))
        if value_at(kept, path) is MISSING or not remove(kept, path):
            return Fitting(None, tuple(left_out))
    return Fitting(kept, tuple(left_out))


def _whole(kind: Kind, path: Path) -> Path:
    """The smallest part that can be left out: what the service replaces whole stays whole."""
    known = kind.field_named(str(path[0])) if path else None
    if known is None:
        return path
    if known.variant is not None:
        return path[:3]
    levels = known.type.depth if isinstance(known.type, MergedObject) else 0
    return path[: 1 + levels]


def _unreadable(value: JSON, path: Path) -> Iterator[Path]:
    """The smallest parts of a value that don't come back as they were."""
    if isinstance(value, dict) and len(path) < 3:
        inner = [
            inner_path
            for key, item in value.items()
            if not reads_back({key: item})
            for inner_path in _unreadable(item, (*path, key))
        ]
        if inner:
            yield from inner
            return
    yield path


def _refused(
    kind: Kind, values: JSONObject, defaults: JSONObject, subject: str
) -> list[tuple[Path, Diagnostic]]:
    places: list[Path] = []

    def place(path: Path) -> Mark:
        places.append(path)
        return Mark("", len(places))

    problems = DiagnosticCollector()
    look = Checked(subject, place, place)
    merged = laid_over(defaults, values)
    check(kind.name, merged, look, problems)
    spec = {name: value for name, value in merged.items() if name not in {*COMMON, kind.parent_key}}
    check_fields(kind, spec, look, problems)
    return [
        (places[diagnostic.at.line - 1] if diagnostic.at is not None else (), diagnostic)
        for diagnostic in problems.diagnostics
        if diagnostic.severity is Severity.ERROR
    ]


def remove(values: dict[str, JSON], path: Path) -> bool:
    """Take out a field, or the one that contains it; False where a resource needs it."""
    holder: JSON = values
    for part in path[:-1]:
        if not isinstance(holder, dict) or part not in holder:
            return False
        if not isinstance(holder[part], dict):
            # A part of a list can't be left out: then the list is.
            del holder[part]
            return True
        holder = holder[part]
    if not path or not isinstance(holder, dict) or path[-1] not in holder:
        return False
    del holder[path[-1]]
    return True


def in_schema_order(kind: Kind, values: JSONObject) -> dict[str, JSON]:
    """The fields in the order of the schemas, in which `fmt` puts them too."""
    ordered: dict[str, JSON] = _ordered(schema(kind.name) or {}, dict(values))
    return ordered


def _ordered(node: Mapping[str, Any], value: JSON) -> JSON:
    if not isinstance(value, dict) or node.get("additionalProperties") is not False:
        return value
    places = {name: place for place, name in enumerate(node.get("properties", {}))}
    names = sorted(value, key=lambda name: places.get(name, len(places)))
    return {name: _ordered(member_schema(node, value, name) or {}, value[name]) for name in names}
