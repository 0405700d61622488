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

from msgspec import Struct, field

from reconciler.model.schemas import looks_secret, schema, schema_names
from reconciler.model.values import JSON, MISSING, PLAIN, Path, SecretRef, form_of

Shape: TypeAlias = Any
"""The class of a leaf, the text of a tag, or a tuple for a container.

The tuple of a mapping holds its keys, each followed by the shape of its value. That of a list holds
`list` and the shapes of its items. Shapes are hashable.
"""

MOST_SHAPES = 4_096
"""Shapes of which results are remembered. A workspace where each resource has its own has more."""
Foreign: TypeAlias = "Mapping[str | int, Foreign] | None"
"""The leaves that are no JSON: None for such a leaf, otherwise the parts that contain some."""


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


def shape_at(shape: Shape, path: Path) -> Shape:
    """Return the shape of the value at a path, or `MISSING`."""
    for part in path:
        if isinstance(part, str):
            shape = members(shape).get(part, MISSING)
        else:
            shape = items(shape)[part] if part < len(items(shape)) else MISSING
    return shape


def leaf_shapes(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Yield the shapes of all leaves with their paths."""
    if not isinstance(shape, tuple):
        yield path, shape
        return
    parts = members(shape).items() if is_mapping(shape) else enumerate(items(shape))
    for name, item in parts:
        yield from leaf_shapes(item, (*path, name))


def body_schema(variants: Mapping[str, str], value: Mapping[str, Any]) -> str | None:
    """Return the name of the schema for the body that the tag of a value chooses by `x-variants`.

    The config of a destination depends on its type. None without a valid tag. The value may be the
    members of a shape, which contains tags.
    """
    tag = value.get(variants["tag"])
    return f"{variants['folder']}/{tag}" if isinstance(tag, str) else None


class OpenEnumeration(Struct, frozen=True):
    """Known values. The service may accept others.

    `flagged` ones require a feature flag. `misnamed` are the right values for frequent wrong ones.
    `nullable`: null is a value too.
    """

    known: tuple[str, ...]
    flagged: frozenset[str] = frozenset()
    misnamed: Mapping[str, str] = field(default_factory=dict)
    nullable: bool = False

    @property
    def ordinary(self) -> frozenset[str]:
        """The values without problems."""
        return frozenset(self.known) - self.flagged

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


class Annotated(Struct, frozen=True):
    """The annotations of a part of a schema. `open_below`: other fields are allowed.

    `checks_text`: a text has an enumeration, is a URL, or may have the listed placeholders.
    `ordinary`: texts without problems. `tags`: the keys that choose variants, here and below.
    """

    secret: bool = False
    open_below: bool = True
    enumeration: OpenEnumeration | None = None
    is_url: bool = False
    placeholders: tuple[str, ...] = ()
    checks_text: bool = False
    ordinary: frozenset[str] = frozenset()
    variants: Mapping[str, str] | None = None
    tags: frozenset[str] = frozenset()
    items: Annotated | None = None
    below: Mapping[str, Annotated] = field(default_factory=dict)


_NULLS = frozenset({"", "none", "null", "nil"})
_PUNCTUATION = re.compile(r"[\W_]+")


def _plain(value: str) -> str:
    """Return a value without case, spaces and punctuation."""
    return _PUNCTUATION.sub("", value).casefold()


_SECRET = "x-secret"  # noqa: S105 - a word of schemas
FREE = Annotated()
"""The annotations of a part that no schema describes."""
HOLDS_SECRETS = Annotated(secret=True)
"""The same, inside a part that may hold secrets."""


@cache
def annotations_of(name: str) -> Annotated:
    """Return the annotations of a whole schema."""
    return _compiled(schema(name) or {})


def _compiled(node: Mapping[str, Any]) -> Annotated:
    items, enumeration = node.get("items"), _enumeration(node)
    checks_more = {"x-url", "x-placeholders"} & node.keys()
    below = {name: _compiled(part) for name, part in node.get("properties", {}).items()}
    variants = node.get("x-variants")
    own_tags = () if variants is None else (variants["tag"],)
    return Annotated(
        secret=bool(node.get("x-secret") or node.get("x-holds-secrets")),
        open_below=node.get("additionalProperties") is not False,
        enumeration=enumeration,
        is_url=bool(node.get("x-url")),
        placeholders=tuple(node.get("x-placeholders", ())),
        checks_text=enumeration is not None or bool(checks_more),
        ordinary=enumeration.ordinary
        if enumeration is not None and not checks_more
        else frozenset(),
        variants=variants,
        tags=frozenset(own_tags).union(*(part.tags for part in below.values())),
        items=_compiled(items) if isinstance(items, dict) else None,
        below=below,
    )


def _enumeration(node: Mapping[str, Any]) -> OpenEnumeration | None:
    known = node.get("x-open-enum")
    if known is None:
        return None
    return OpenEnumeration(
        tuple(known),
        frozenset(node.get("x-feature-flag", ())),
        node.get("x-misnamed", {}),
        "null" in node.get("type", ()),
    )


_Collected: TypeAlias = dict[str, list[tuple[Path, Mapping[str, Any]]]]
Carriers: TypeAlias = Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]
"""The paths inside a value by the annotation of their schema, each with the schema."""


def annotated(name: str, words: frozenset[str], value: JSON) -> Carriers:
    """Return the parts of a value whose schema has one of some annotations."""
    return carriers_of(name, words, shape_of(value, annotations_of(name).tags))


@lru_cache(maxsize=MOST_SHAPES)
def carriers_of(name: str, words: frozenset[str], shape: Shape) -> Carriers:
    """Return the parts of values of a shape whose schema has one of some annotations."""
    carriers: _Collected = {}
    _collect(_compiled_for(name, words), words, shape, (), carriers)
    return carriers


def _collect(
    compiled: _Compiled, words: frozenset[str], shape: Shape, above: Path, carriers: _Collected
) -> None:
    for word, node in compiled.top:
        carriers.setdefault(word, []).append((above, node))
    for key in members(shape):
        for word, path, node in compiled.below.get(key, ()):
            if shape_at(shape, path) is not MISSING:
                carriers.setdefault(word, []).append(((*above, *path), node))
    for path, variants in compiled.variants:
        holder, body = members(shape_at(shape, path)), variants["body"]
        if body in holder:
            inside = (*above, *path, body)
            _collect_body(body_schema(variants, holder), words, holder[body], inside, carriers)


def _collect_body(
    name: str | None, words: frozenset[str], shape: Shape, path: Path, carriers: _Collected
) -> None:
    if name in schema_names():
        _collect(_compiled_for(name, words), words, shape, path, carriers)
    elif _SECRET in words:
        for deeper in _secret_by_name(shape):
            carriers.setdefault(_SECRET, []).append(((*path, *deeper), {_SECRET: True}))


def _secret_by_name(shape: Shape) -> Iterator[Path]:
    """Yield the paths of fields that look secret, below a type that no schema describes."""
    for path, leaf in leaf_shapes(shape):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if leaf is not bool and looks_secret(name):
            yield path


class _Compiled(Struct, frozen=True):
    """The parts of a schema with some annotations: the schema itself, and others by first key.

    `variants` are the paths of variants with their `x-variants`.
    """

    top: tuple[tuple[str, Mapping[str, Any]], ...]
    below: Mapping[str, tuple[tuple[str, Path, Mapping[str, Any]], ...]]
    variants: tuple[tuple[Path, Mapping[str, str]], ...]


@cache
def _compiled_for(name: str, words: frozenset[str]) -> _Compiled:
    nodes = tuple(_nodes(schema(name) or {}, ()))
    below: dict[str, tuple[tuple[str, Path, Mapping[str, Any]], ...]] = {}
    for path, node in nodes[1:]:
        carried = tuple((word, path, node) for word in sorted(words & node.keys()))
        if carried:
            below[str(path[0])] = (*below.get(str(path[0]), ()), *carried)
    return _Compiled(
        tuple((word, nodes[0][1]) for word in sorted(words & nodes[0][1].keys())),
        below,
        tuple(
            (path, node["x-variants"])
            for path, node in nodes
            if "x-variants" in node and _may_be_inside(node["x-variants"], words)
        ),
    )


def _may_be_inside(variants: Mapping[str, str], words: frozenset[str]) -> bool:
    """Return whether a body of some variants may have an annotation."""
    names = (name for name in schema_names() if name.startswith(f"{variants['folder']}/"))
    compiled = (_compiled_for(name, words) for name in names)
    return _SECRET in words or any(one.top or one.below or one.variants for one in compiled)


def _nodes(node: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from _nodes(below, (*path, name))


class Outline(Struct, frozen=True):
    """Where the values of a shape have what the checks of a schema look at.

    foreign
        The leaves that a JSON Schema does not know: secrets, inputs and unknown values.
    texts
        The texts that are checked, with their annotations, by the path of what contains them.
    misplaced
        The secrets in fields that hold none.
    bodies
        The bodies of variants.
    """

    foreign: Foreign = field(default_factory=dict)
    texts: tuple[tuple[Path, tuple[tuple[str | int, Annotated], ...]], ...] = ()
    misplaced: tuple[Path, ...] = ()
    bodies: tuple[Body, ...] = ()


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
    parts = _Parts()
    parts.look_at(annotations_of(name), shape, ())
    texts = tuple((path, tuple(inside)) for path, inside in parts.texts.items())
    return Outline(_foreign(shape), texts, tuple(parts.misplaced), tuple(parts.bodies))


def _foreign(shape: Shape) -> Foreign:
    if not isinstance(shape, tuple):
        return {} if is_text(shape) or shape in PLAIN else None
    parts = members(shape).items() if is_mapping(shape) else enumerate(items(shape))
    below = {name: _foreign(item) for name, item in parts}
    return {name: foreign for name, foreign in below.items() if foreign != {}}


class _Parts(Struct):
    texts: dict[Path, list[tuple[str | int, Annotated]]] = field(default_factory=dict)
    misplaced: list[Path] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)

    def look_at(self, part: Annotated, shape: Shape, path: Path) -> None:
        """Find what is at a path and below it."""
        if is_mapping(shape):
            self._look_at_members(part, members(shape), path)
        elif isinstance(shape, tuple):
            below = part.items or _undescribed(part)
            for position, item in enumerate(items(shape)):
                self.look_at(below, item, (*path, position))
        elif shape is SecretRef:
            if not part.secret:
                self.misplaced.append(path)
        elif part.checks_text and is_text(shape):
            self.texts.setdefault(path[:-1], []).append((path[-1], part))

    def _look_at_members(self, part: Annotated, shapes: Mapping[str, Shape], path: Path) -> None:
        body = part.variants["body"] if part.variants is not None else None
        if part.variants is not None:
            self._look_at_body(part.variants, shapes, path)
        # An unknown field is reported as unknown only, not as a secret too.
        undescribed = _undescribed(part) if part.open_below else None
        for name, shape in shapes.items():
            below = part.below.get(name, undescribed)
            if name != body and below is not None:
                self.look_at(below, shape, (*path, name))

    def _look_at_body(
        self, variants: Mapping[str, str], shapes: Mapping[str, Shape], path: Path
    ) -> None:
        name, body = body_schema(variants, shapes), shapes.get(variants["body"])
        if name is None or not is_mapping(body):
            return
        unset = shapes.get(variants["unless"], type(None)) is type(None)
        required = (schema(name) or {}).get("x-required-unless", ()) if unset else ()
        self.bodies.append(
            Body(
                path=(*path, variants["body"]),
                tag=shapes[variants["tag"]],
                schema=name,
                outline=outline(name, body),
                lacks=tuple(field for field in required if field not in members(body)),
                unless=variants["unless"],
            )
        )


def _undescribed(part: Annotated) -> Annotated:
    """Return the annotations of what a schema does not describe inside a part."""
    return HOLDS_SECRETS if part.secret else FREE
