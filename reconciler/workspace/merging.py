"""Merge the layers of a resource: the defaults of its kind, the resource and its override."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from reconciler.model.kind import Kind
from reconciler.model.values import JSON, MISSING, UNSET, holds_reference
from reconciler.workspace.declarations import Declaration
from reconciler.workspace.managed_fields import ManagedFields, managed_in
from reconciler.workspace.schema.annotations import annotations_of
from reconciler.workspace.schema.shapes import MOST_SHAPES, Shape, shape_of
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Layer


class KindLayers(Struct, frozen=True):
    """What the resources of a kind share in one environment.

    `defaults` is their lowest layer, None without defaults. `canonical` are the kind's own names of
    fields by any name, `holders` the fields that have variants, and `tags` the keys that choose
    one. `filled` returns a text with its references filled in. `_managed` remembers the managed
    fields of each shape.
    """

    kind: Kind
    environment: str
    defaults: Layer | None
    default_values: Mapping[str, Any]
    canonical: Mapping[str, str]
    holders: tuple[str, ...]
    tags: frozenset[str]
    filled: Callable[[str], JSON]
    _managed: dict[Shape, ManagedFields] = field(default_factory=dict)

    @classmethod
    def of(
        cls, kind: Kind, workspace: Workspace, environment: str, filled: Callable[[str], JSON]
    ) -> KindLayers:
        """Return what the resources of a kind share. Of two fields the first one has a name."""
        values = workspace.section("defaults", kind.name)
        layer = Layer(workspace.document, ("defaults", kind.name), "defaults")
        names = [(item.name, name) for item in kind.fields for name in (item.name, *item.aliases)]
        return cls(
            kind,
            environment,
            layer if values else None,
            layer.value if values else {},
            {name: own for own, name in reversed(names)},
            tuple(item.name for item, _ in kind.variants),
            annotations_of(kind.name).tags,
            filled,
        )

    def layers_of(
        self, declaration: Declaration, override: Mapping[str, Any] | None
    ) -> tuple[Layer, ...]:
        """Return the layers of a resource, topmost first."""
        document, path = declaration.document, declaration.path
        own = Layer(document, path, "resource")
        below = (own,) if self.defaults is None else (own, self.defaults)
        if override is None:
            return below
        inside = (*path, "overrides", self.environment)
        return (Layer(document, inside, f"override {self.environment}"), *below)

    def merged(
        self, body: Mapping[str, Any], override: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Return the layers of a resource as one. References are not filled in."""
        merged = self._over(self.default_values, body) if self.defaults is not None else body
        return self._over(merged, override) if override is not None else merged

    def managed(self, fields: Mapping[str, Any]) -> ManagedFields:
        """Return the managed fields of a resource, the same for all of its shape."""
        shape = shape_of(fields, self.tags)
        known = self._managed.get(shape)
        if known is None:
            if len(self._managed) >= MOST_SHAPES:
                self._managed.clear()
            known = self._managed[shape] = managed_in(
                shape, kind=self.kind, canonical=self.canonical, holders=self.holders
            )
        return known

    def override(self, declaration: Declaration) -> Mapping[str, Any] | None:
        """Return the fields of a resource for this environment alone, None without any."""
        overrides = declaration.body.get("overrides")
        fields = overrides.get(self.environment) if isinstance(overrides, dict) else None
        return fields if isinstance(fields, dict) else None

    def _over(self, below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
        merged: dict[str, Any] = laid_over(below, above)
        for name in below.keys() & above.keys():
            if isinstance(above[name], dict) and self._is_replaced(name, below[name], above[name]):
                merged[name] = above[name]
        return merged

    def _is_replaced(self, name: str, below: Any, above: Mapping[str, Any]) -> bool:
        """Return whether a mapping replaces the one below instead of being merged with it.

        A parent does, since {name: …} and {id: …} exclude each other, and so does a variant with
        another tag, since the fields of one type have no meaning in another.
        """
        if name == self.kind.parent_key:
            return True
        field = self.kind.field_named(name) if isinstance(below, dict) else None
        if field is None or field.variant is None:
            return False
        tags = [side.get(field.variant.tag, MISSING) for side in (below, above)]
        if MISSING in tags or tags[0] == tags[1]:
            return False
        if not any(isinstance(tag, str) and holds_reference(tag) for tag in tags):
            return True
        # ${var:type} may be the type of the other layer.
        lower, upper = (self.filled(tag) if isinstance(tag, str) else tag for tag in tags)
        return bool(lower != upper)


def laid_over(below: Any, above: Any) -> Any:
    """Return two layers merged: mappings key by key, anything else is replaced.

    `${unset}` removes the value below.
    """
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = {**below, **above}
    for key, lower in below.items():
        if key not in above:
            continue
        value = above[key]
        if isinstance(value, dict):
            merged[key] = laid_over(lower, value)
        elif value == UNSET:
            del merged[key]
    return merged
