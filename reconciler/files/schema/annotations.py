"""The `x-` words of schemas: where the parts of a value have some."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from reconciler.model.schemas import looks_secret, schema, schema_names
from reconciler.model.values import JSON, Path, SecretRef, leaves

SECRET = "x-secret"  # noqa: S105 - a word of schemas
_HOLDS_SECRETS = "x-holds-secrets"
_MAY_BE_SECRET = {_HOLDS_SECRETS: True}
_HOLDERS = frozenset({dict, list})
_LOOKED_INTO = _HOLDERS | {SecretRef}
_NULLS = frozenset({"", "none", "null", "nil"})
_PUNCTUATION = re.compile(r"[\W_]+")
Part: TypeAlias = tuple[Path, Mapping[str, Any], JSON, Sequence[str]]
"""A part of a value: its path, its schema, the value, and the annotations that are asked for."""
Carriers: TypeAlias = Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]
"""The paths inside a value by the annotation of their schema, each with the schema."""


def spelling(node: Mapping[str, Any], value: str) -> str | None:
    """Return the hint for a value that no service accepts, None for one that may be new.

    `node` is a schema with an open enumeration.
    """
    plain = _plain(value)
    if "null" in node.get("type", ()) and plain in _NULLS:
        return "write null, without quotes"
    right = {_plain(known): known for known in node["x-open-enum"]}.get(plain)
    right = right or node.get("x-misnamed", {}).get(plain)
    return f"write '{right}'" if right is not None else None


def _plain(value: str) -> str:
    """Return a value without case, spaces and punctuation."""
    return _PUNCTUATION.sub("", value).casefold()


def holds_secrets(node: Mapping[str, Any]) -> bool:
    """Return whether a schema allows secrets."""
    return bool(node.get(SECRET) or node.get(_HOLDS_SECRETS))


def parts(node: Mapping[str, Any], value: JSON, words: frozenset[str]) -> Sequence[Part]:
    """Return a value, the mappings and lists in it, its secrets, and what has some annotations.

    Without parts that the schema does not allow, and without the bodies of variants.

    A part that no schema describes has a schema that only says whether it may hold secrets.
    """
    walked: list[Part] = [((), node, value, _members(node, words).own)]
    for path, holder, inside, _ in walked:  # It grows meanwhile.
        if inside.__class__ not in _HOLDERS:
            continue
        known = _members(holder, words)
        if inside.__class__ is dict:
            for name, member in inside.items():
                own = known.marked.get(name, ())
                if own or member.__class__ in _LOOKED_INTO:
                    below = known.schemas.get(name, known.other)
                    if below is not None:
                        walked.append(((*path, name), below, member, own))
        else:
            own = known.of_items
            for position, member in enumerate(inside):
                if own or member.__class__ in _LOOKED_INTO:
                    walked.append(((*path, position), known.items, member, own))
    return walked


class _Members(NamedTuple):
    """What a schema says about members, by name or for all `items`, and which words they have.

    `own` are the words of the schema itself. It is kept, so that no other one gets its id.
    """

    node: Mapping[str, Any]
    own: tuple[str, ...]
    schemas: Mapping[str, Mapping[str, Any] | None]
    marked: Mapping[str, tuple[str, ...]]
    other: Mapping[str, Any] | None
    items: Mapping[str, Any]
    of_items: tuple[str, ...]


_KNOWN: dict[tuple[int, frozenset[str]], _Members] = {}


def _members(node: Mapping[str, Any], words: frozenset[str]) -> _Members:
    """Return what a schema says about members. It is found out once: values are many."""
    known = _KNOWN.get((id(node), words))
    if known is None:
        other: Mapping[str, Any] = _MAY_BE_SECRET if holds_secrets(node) else {}
        schemas = dict(node.get("properties", {}))
        if "x-variants" in node:
            schemas[node["x-variants"]["body"]] = None
        items = node.get("items") or other
        known = _KNOWN[id(node), words] = _Members(
            node,
            tuple(filter(words.__contains__, node)),
            schemas,
            {
                name: tuple(filter(words.__contains__, below or ()))
                for name, below in schemas.items()
            },
            None if node.get("additionalProperties") is False else other,
            items,
            tuple(filter(words.__contains__, items)),
        )
    return known


class Body(NamedTuple):
    """The body of a variant: its path, the name of its schema, the variant, and the value.

    The name is None without a tag, and may be that of no schema.
    """

    path: Path
    schema: str | None
    tag: JSON
    value: JSON


def body_of(node: Mapping[str, Any], value: JSON, path: Path) -> Body | None:
    """Return the body of the variant in a value, None without one."""
    variants = node.get("x-variants")
    if variants is None or not isinstance(value, dict) or variants["body"] not in value:
        return None
    tag = value.get(variants["tag"])
    name = f"{variants['folder']}/{tag}" if tag.__class__ is str else None
    return Body((*path, variants["body"]), name, tag, value[variants["body"]])


def annotated(name: str, words: frozenset[str], value: JSON) -> Carriers:
    """Return the parts of a value whose schema has one of some annotations."""
    carriers: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for path, node, inside, own in parts(schema(name) or {}, value, words):
        for word in own:
            carriers.setdefault(word, []).append((path, node))
        body = body_of(node, inside, path)
        if body is None:
            continue
        if body.schema in schema_names():
            for word, places in annotated(str(body.schema), words, body.value).items():
                below = [((*body.path, *deeper), part) for deeper, part in places]
                carriers.setdefault(word, []).extend(below)
        elif SECRET in words:
            carriers.setdefault(SECRET, []).extend(secrets_by_name(body))
    return carriers


def secrets_by_name(body: Body) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the fields that look secret, below a type that no schema describes."""
    for path, leaf in leaves(body.value, body.path):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if leaf.__class__ is not bool and looks_secret(name):
            yield path, {SECRET: True}
