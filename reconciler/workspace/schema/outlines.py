"""Outlines: where the values of a shape have what the checks of a schema look at."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.schemas import schema
from reconciler.model.values import PLAIN, Path, SecretRef
from reconciler.workspace.schema.annotations import (
    FREE,
    HOLDS_SECRETS,
    Annotated,
    annotations_of,
    body_schema,
)
from reconciler.workspace.schema.shapes import (
    MOST_SHAPES,
    Shape,
    is_mapping,
    is_text,
    items,
    members,
)

Foreign: TypeAlias = "Mapping[str | int, Foreign] | None"
"""The leaves that are no JSON: None for such a leaf, otherwise the parts that contain some."""


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
