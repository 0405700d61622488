"""Compile the `x-` words of schemas once, and visit values only where they apply.

A check that depends on the shape of a value only runs once for all values of a shape. Resources
have few shapes: most of those of an organization set the same fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from reconciler.model.schemas import looks_secret, schema, schema_names
from reconciler.model.values import JSON, PLAIN, Path, SecretRef, form_of

Shape: TypeAlias = Any
"""The class of a leaf, the text of a tag, or a tuple for a container.

The tuple of a mapping holds its keys, each followed by the shape of its value. That of a list holds
`list` and the shapes of its items. Shapes are hashable.
"""

MOST_SHAPES = 4_096
"""Shapes of which results are remembered. A workspace where each resource has its own has more."""
Foreign: TypeAlias = "Mapping[str | int, Foreign] | None"
"""The leaves that are no JSON: None for such a leaf, otherwise the parts that contain some."""


_SECRET = "x-secret"  # noqa: S105 - a word of schemas
_HOLDS_SECRETS = "x-holds-secrets"
_TEXT_WORDS = frozenset({"x-form", "x-open-enum", "x-url", "x-placeholders"})
_NULLS = frozenset({"", "none", "null", "nil"})
_PUNCTUATION = re.compile(r"[\W_]+")


class TextWithAt:
    """The shape of a text with an @, which may be a URL with a password."""


def shape_of(value: JSON, tags: AbstractSet[str] = frozenset()) -> Shape:
    """Return the shape of a value. `tags` are the keys whose texts belong to the shape."""
    form = form_of(value.__class__)
    parts: list[Any]
    if form is dict:
        parts = []
        for key, item in value.items():
            # The shapes of leaves are here again, without a call: most values are leaves.
            kind = item.__class__
            if kind is str:
                kind = item if key in tags else TextWithAt if "@" in item else str
            elif kind not in PLAIN and form_of(kind) is not None:
                kind = shape_of(item, tags)
            parts.append(key)
            parts.append(kind)
        return tuple(parts)
    if form is list:
        parts = [list]
        for item in value:
            kind = item.__class__
            parts.append(str if kind is str and "@" not in item else shape_of(item, tags))
        return tuple(parts)
    return TextWithAt if value.__class__ is str and "@" in value else value.__class__


def is_text(shape: Shape) -> bool:
    """Return whether a shape is that of plain text."""
    return shape is str or shape is TextWithAt or isinstance(shape, str)


def is_mapping(shape: Shape) -> bool:
    """Return whether a shape is that of a mapping."""
    return isinstance(shape, tuple) and shape[:1] != (list,)


def members(shape: Shape) -> Mapping[str, Shape]:
    """Return the shapes in a mapping by key, none for another value."""
    return dict(zip(shape[::2], shape[1::2], strict=True)) if is_mapping(shape) else {}


def items(shape: Shape) -> Sequence[Shape]:
    """Return the shapes in a list, none for another value."""
    return shape[1:] if isinstance(shape, tuple) and not is_mapping(shape) else ()


def leaf_shapes(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Yield the shapes of all leaves with their paths."""
    if not isinstance(shape, tuple):
        yield path, shape
        return
    parts = members(shape).items() if is_mapping(shape) else enumerate(items(shape))
    for name, item in parts:
        yield from leaf_shapes(item, (*path, name))


class TextRule(Struct, frozen=True):
    """What the schema of a field says about its text.

    `known` are the values of an open enumeration: the service may accept others. `flagged` ones
    require a feature flag. `misnamed` are the right values for frequent wrong ones. `nullable`:
    null is a value too. `placeholders` are those that the text may have. `form` is what a text must
    be, unless another field is set. `ordinary` texts have no problem.
    """

    known: tuple[str, ...]
    flagged: frozenset[str]
    misnamed: Mapping[str, str]
    nullable: bool
    is_url: bool
    placeholders: tuple[str, ...]
    form: Mapping[str, str]
    ordinary: frozenset[str]

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> TextRule | None:
        """Return the rule in the schema of a field, None without one."""
        if _TEXT_WORDS.isdisjoint(node):
            return None
        known, flagged = node.get("x-open-enum", ()), node.get("x-feature-flag", ())
        is_url, placeholders = bool(node.get("x-url")), tuple(node.get("x-placeholders", ()))
        return cls(
            known=tuple(known),
            flagged=frozenset(flagged),
            misnamed=node.get("x-misnamed", {}),
            nullable="null" in node.get("type", ()),
            is_url=is_url,
            placeholders=placeholders,
            form=node.get("x-form", {}),
            ordinary=frozenset(() if is_url or placeholders else known).difference(flagged),
        )

    def fix(self, value: str) -> str | None:
        """Return the hint for a value that no service accepts, None for one that may be new."""
        plain = _plain(value)
        if self.nullable and plain in _NULLS:
            return "write null, without quotes"
        for known in self.known:
            if _plain(known) == plain:
                return f"write '{known}'"
        right = self.misnamed.get(plain)
        return f"write '{right}'" if right is not None else None


def _plain(value: str) -> str:
    """Return a value without case, spaces and punctuation."""
    return _PUNCTUATION.sub("", value).casefold()


def _holds_secrets(node: Mapping[str, Any]) -> bool:
    return bool(node.get(_SECRET) or node.get(_HOLDS_SECRETS))


@cache
def tags_of(name: str) -> frozenset[str]:
    """Return the keys that choose variants in values of a schema."""
    return frozenset(_tags(schema(name) or {}))


def _tags(node: Mapping[str, Any]) -> Iterator[str]:
    if "x-variants" in node:
        yield node["x-variants"]["tag"]
    for below in node.get("properties", {}).values():
        yield from _tags(below)


_Part: TypeAlias = tuple[Path, Mapping[str, Any], Shape]
"""A part of a value of a shape: its path, its schema and its shape."""


def _parts(node: Mapping[str, Any], shape: Shape, path: Path = ()) -> Iterator[_Part]:
    """Yield a value of a shape and all parts of it, without the bodies of variants.

    A part that no schema describes has a schema that only says whether it may hold secrets. Fields
    that are not allowed are left out.
    """
    yield path, node, shape
    undescribed = {_HOLDS_SECRETS: True} if _holds_secrets(node) else {}
    if not is_mapping(shape):
        for position, item in enumerate(items(shape)):
            yield from _parts(node.get("items") or undescribed, item, (*path, position))
        return
    properties, is_open = node.get("properties", {}), node.get("additionalProperties") is not False
    body = node["x-variants"]["body"] if "x-variants" in node else None
    for name, member in members(shape).items():
        below = properties.get(name, undescribed if is_open else None)
        if below is not None and name != body:
            yield from _parts(below, member, (*path, name))


_Body: TypeAlias = tuple[Path, str | None, Shape]


def _body_of(node: Mapping[str, Any], shape: Shape, path: Path) -> _Body | None:
    """Return the path of the body of a variant, the name of its schema, and its shape.

    None without a body. The config of a destination depends on its type: the name is None without
    a valid tag, and may be that of no schema.
    """
    variants, fields = node.get("x-variants"), members(shape)
    if variants is None or variants["body"] not in fields:
        return None
    tag = fields.get(variants["tag"])
    name = f"{variants['folder']}/{tag}" if isinstance(tag, str) else None
    return (*path, variants["body"]), name, fields[variants["body"]]


Carriers: TypeAlias = Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]
"""The paths inside a value by the annotation of their schema, each with the schema."""


def annotated(name: str, words: frozenset[str], value: JSON) -> Carriers:
    """Return the parts of a value whose schema has one of some annotations."""
    return carriers_of(name, words, shape_of(value, tags_of(name)))


@lru_cache(maxsize=MOST_SHAPES)
def carriers_of(name: str, words: frozenset[str], shape: Shape) -> Carriers:
    """Return the parts of values of a shape whose schema has one of some annotations."""
    carriers: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for path, node, inside in _parts(schema(name) or {}, shape):
        for word in filter(words.__contains__, node):
            carriers.setdefault(word, []).append((path, node))
        body = _body_of(node, inside, path)
        if body is None:
            continue
        at, body_name, below = body
        if body_name in schema_names():
            for word, places in carriers_of(body_name, words, below).items():
                carriers.setdefault(word, []).extend(
                    ((*at, *deeper), part) for deeper, part in places
                )
        elif _SECRET in words:
            carriers.setdefault(_SECRET, []).extend(
                ((*at, *deeper), {_SECRET: True}) for deeper in _secret_by_name(below)
            )
    return carriers


def _secret_by_name(shape: Shape) -> Iterator[Path]:
    """Yield the paths of fields that look secret, below a type that no schema describes."""
    for path, leaf in leaf_shapes(shape):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if leaf is not bool and looks_secret(name):
            yield path


class Outline(Struct, frozen=True):
    """Where the values of a shape have what the checks of a schema look at.

    foreign
        The leaves that a JSON Schema does not know: secrets, inputs and unknown values.
    texts
        The texts that are checked, with their rules, by the path of what contains them.
    misplaced
        The secrets in fields that hold none.
    bodies
        The bodies of variants.
    """

    foreign: Foreign
    texts: Mapping[Path, Sequence[tuple[str | int, TextRule]]]
    misplaced: Sequence[Path]
    bodies: Sequence[Body]


class Body(Struct, frozen=True):
    """The body of a variant.

    `lacks` are the fields that it requires and does not have, since `unless` is not set.
    """

    path: Path
    tag: str
    schema: str
    outline: Outline
    lacks: tuple[str, ...]
    unless: str


@lru_cache(maxsize=MOST_SHAPES)
def outline(name: str, shape: Shape) -> Outline:
    """Return the outline of values of a shape by the schema of a name."""
    texts: dict[Path, list[tuple[str | int, TextRule]]] = {}
    misplaced: list[Path] = []
    bodies: list[Body] = []
    for path, node, inside in _parts(schema(name) or {}, shape):
        if inside is SecretRef:
            if not _holds_secrets(node):
                misplaced.append(path)
        elif is_text(inside):
            rule = TextRule.of(node)
            if rule is not None:
                texts.setdefault(path[:-1], []).append((path[-1], rule))
        elif (body := _outlined_body(node, inside, path)) is not None:
            bodies.append(body)
    return Outline(_foreign(shape), texts, misplaced, bodies)


def _outlined_body(node: Mapping[str, Any], shape: Shape, path: Path) -> Body | None:
    """Return the body of a variant with a valid tag, None without one."""
    body = _body_of(node, shape, path)
    at, name, below = body if body is not None else (path, None, None)
    if name is None or not is_mapping(below):
        return None
    variants, fields = node["x-variants"], members(shape)
    unset = fields.get(variants["unless"], type(None)) is type(None)
    required = (schema(name) or {}).get("x-required-unless", ()) if unset else ()
    return Body(
        path=at,
        tag=fields[variants["tag"]],
        schema=name,
        outline=outline(name, below),
        lacks=tuple(field for field in required if field not in members(below)),
        unless=variants["unless"],
    )


def _foreign(shape: Shape) -> Foreign:
    if not isinstance(shape, tuple):
        return {} if is_text(shape) or shape in PLAIN else None
    parts = members(shape).items() if is_mapping(shape) else enumerate(items(shape))
    below = {name: _foreign(item) for name, item in parts}
    return {name: foreign for name, foreign in below.items() if foreign != {}}
