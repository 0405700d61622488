"""How two environments differ: a resource in the files, and the objects of their live states.

Live objects of a resource are compared by its address, others by their name and that of their
parent: ids differ between environments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, UnsetType, field
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.comparison import comparable, field_leaves, is_default, is_same, with_default
from reconciler.model.kind import Field, Kind
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.public import Count, Public, Term, derived, encode_value
from reconciler.model.resource import Resource, State
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    mapping_of,
    path_text,
    value_at,
)
from reconciler.planning.details import short_forms
from reconciler.planning.integrations import named
from reconciler.planning.matcher import Matching

_IDENTITY: tuple[Path, ...] = (("id",), ("name",), ("lifecycle", "renamed_from"))
"""What an object is recognized by, which may differ between environments."""
_NAME: Path = ("name",)


class Intent(Term):
    """Why a difference is intended."""

    IDENTITY = "identity", "identity of the object"
    SECRET = "secret", "secret of the environment"
    OVERRIDES = "overrides", "overrides of both environments"
    REFERENCE = "reference", "reference"


class FieldSide(Public, frozen=True):
    """A field in one environment."""

    internal = frozenset({"value"})

    value: JSON
    written: str | None = None
    """The text in the files, if references were filled in."""
    at: Mark | None = None

    @derived
    def value_(self) -> JSON | UnsetType:
        """Absent if the field is not set. A secret is the text of its reference."""
        return encode_value(self.value)


class FieldDifference(Public, frozen=True):
    """A field that differs."""

    internal = frozenset({"intent"})

    path: Path
    first: FieldSide
    second: FieldSide
    intent: Intent | None = None

    @derived
    def name(self) -> str:
        """The path as text."""
        return path_text(self.path)

    @derived
    def intended(self) -> Intent | None:
        """Why the difference is intended, null if it is not."""
        return self.intent


class ResourceDifference(Public, frozen=True):
    """A resource that differs."""

    address: Address
    name: str = field(name="resource_name")
    """Its name in the first environment."""
    fields: tuple[FieldDifference, ...]

    @property
    def unintended(self) -> tuple[FieldDifference, ...]:
        """The differences that nothing in the files explains."""
        return tuple(field for field in self.fields if field.intent is None)

    @property
    def intended(self) -> tuple[FieldDifference, ...]:
        """The other differences."""
        return tuple(field for field in self.fields if field.intent is not None)


class OnlyIn(Public, frozen=True):
    """A resource or object that one environment does not have."""

    address: Address
    name: str = field(name="resource_name")
    at: Mark | None = None


class EnvironmentComparison(Public, frozen=True):
    """Two environments."""

    schema = "compare"
    version = 1

    first: str
    second: str
    live: bool
    only_first: tuple[OnlyIn, ...]
    only_second: tuple[OnlyIn, ...]
    resources: tuple[ResourceDifference, ...]
    equal: Count
    """Resources without a difference."""

    @property
    def differing(self) -> tuple[ResourceDifference, ...]:
        """The resources with differences that are not intended."""
        return tuple(resource for resource in self.resources if resource.unintended)

    @property
    def intended(self) -> tuple[ResourceDifference, ...]:
        """The resources with intended differences."""
        return tuple(resource for resource in self.resources if resource.intended)

    @derived
    def is_equal(self) -> bool:
        """Whether there are only intended differences."""
        return not (self.only_first or self.only_second or self.differing)


class EnvironmentSide(Struct, frozen=True):
    """A resource in one environment, None if it is not there, and its overrides as written."""

    resource: Resource | None
    overrides: JSONObject


class Promotion(Struct, frozen=True):
    """A value to set in the overrides of the second environment, `MISSING` to remove it."""

    path: Path
    value: JSON


def field_differences(
    kind: Kind, first: EnvironmentSide, second: EnvironmentSide
) -> tuple[FieldDifference, ...]:
    """Return what differs in a resource that both environments have. Ids are not compared."""
    differing = _differing(kind, first.resource, second.resource)
    promoted = [_canonical(kind, item.path) for item in _promotions(kind, first, second)]
    return tuple(
        FieldDifference(
            path,
            FieldSide(value),
            FieldSide(other),
            None
            if any(_is_related(path, item) for item in promoted)
            else _intent(kind, path, first, second),
        )
        for path, (value, other) in differing.items()
    )


def promotions(
    kind: Kind, first: EnvironmentSide, second: EnvironmentSide
) -> tuple[Promotion, ...]:
    """Return the edits of the second environment's overrides that leave only intended differences.

    All overrides of the first are copied if the second does not have the resource.
    """
    edits = tuple(_promotions(kind, first, second))
    if second.resource is None:
        return edits
    differing = _differing(kind, first.resource, second.resource)
    return tuple(
        edit
        for edit in edits
        if any(_is_related(path, _canonical(kind, edit.path)) for path in differing)
    )


def _differing(
    kind: Kind, first: Resource | None, second: Resource | None
) -> dict[Path, tuple[JSON, JSON]]:
    """Return the values of both environments by path, where they differ."""
    before, after = _values(kind, first), _values(kind, second)
    nothing: tuple[Field | None, JSON] = (None, MISSING)
    differing: dict[Path, tuple[JSON, JSON]] = {}
    for path in {**before, **after}:
        field, value = before.get(path, nothing)
        _, other = after.get(path, nothing)
        if not _is_equal(field, value, other):
            differing[path] = value, other
    return differing


def _is_equal(field: Field | None, value: JSON, other: JSON) -> bool:
    """Return whether two configured values are one. A field that is not managed equals no value."""
    if field is None or other is MISSING:
        return bool(value == other)
    return is_same(with_default(field, value), with_default(field, other))


def _values(kind: Kind, resource: Resource | None) -> dict[Path, tuple[Field | None, JSON]]:
    """Return the leaves of a resource by path, with those that are not fields of the API."""
    if resource is None:
        return {}
    values: dict[Path, tuple[Field | None, JSON]] = {}
    if resource.parent is not None and kind.parent_key is not None:
        values[kind.parent_key,] = None, resource.parent.value
    if resource.state is not State.PRESENT:
        values["state",] = None, resource.state.value
    for leaf in field_leaves(kind.fields, resource.spec, live=False):
        values[leaf.path] = leaf.field, leaf.value
    for name, value in resource.lifecycle.given().items():
        values["lifecycle", name] = None, value
    if resource.secret_version is not None:
        values["secret_version",] = None, resource.secret_version
    return values


def _promotions(kind: Kind, first: EnvironmentSide, second: EnvironmentSide) -> Iterator[Promotion]:
    """Yield what one environment overrides and the other does not, whether it has an effect."""
    for name in {**first.overrides, **second.overrides}:
        path = (name,)
        value = first.overrides.get(name, MISSING)
        other = second.overrides.get(name, MISSING)
        if _has_other_tag(kind, path, first, second):
            tag = _tag_of(kind, path)
            sets, sets_other = _sets(value, tag), _sets(other, tag)
            if sets != sets_other:
                yield Promotion(path, value)
            if sets or sets_other:
                continue
        yield from _one_sided(kind, path, (value, other), first, second)


def _one_sided(
    kind: Kind, path: Path, pair: Sequence[JSON], first: EnvironmentSide, second: EnvironmentSide
) -> Iterator[Promotion]:
    if _kept(kind, _canonical(kind, path), first, second) is not None:
        return
    sides = [side for side in pair if side is not MISSING]
    if all(isinstance(side, Mapping) and side for side in sides):
        below = [mapping_of(side) for side in pair]
        for name in {**below[0], **below[1]}:
            inner = [side.get(name, MISSING) for side in below]
            yield from _one_sided(kind, (*path, name), inner, first, second)
    elif len(sides) == 1:
        yield Promotion(path, pair[0])


def _kept(kind: Kind, path: Path, first: EnvironmentSide, second: EnvironmentSide) -> Intent | None:
    """Return why a field stays as it is in every environment, None if it may be promoted."""
    if path in _IDENTITY:
        return Intent.IDENTITY
    if path == (kind.parent_key,):
        parents = [side.resource.parent for side in (first, second) if side.resource is not None]
        is_live = any(parent is not None and parent.key is None for parent in parents)
        return Intent.IDENTITY if is_live else None
    values = [value_at(side.resource.spec, path) for side in (first, second) if side.resource]
    if path in kind.integration_paths and second.resource is not None:
        is_id = any(isinstance(value, int) or str(value).isdigit() for value in values)
        return Intent.IDENTITY if is_id else None
    is_secret = all(isinstance(value, SecretRef) for value in values)
    return Intent.SECRET if is_secret and second.resource is not None else None


def _intent(kind: Kind, path: Path, first: EnvironmentSide, second: EnvironmentSide) -> Intent:
    """Return why a difference that is not promoted is intended."""
    kept = _kept(kind, path, first, second)
    if kept is not None:
        return kept
    overrides = [_nearest(kind, side.overrides, path) for side in (first, second)]
    return Intent.REFERENCE if overrides[0] == overrides[1] else Intent.OVERRIDES


def _nearest(kind: Kind, overrides: JSONObject, path: Path) -> JSON:
    """Return what overrides set at a path, or at the nearest one above it."""
    value: JSON = {_canonical(kind, (name,))[0]: item for name, item in overrides.items()}
    for part in path:
        if not isinstance(value, Mapping):
            break
        value = value.get(part, MISSING)
    return value


def _has_other_tag(kind: Kind, path: Path, first: EnvironmentSide, second: EnvironmentSide) -> bool:
    """Return whether a field is a variant with another tag in each environment.

    Tags of a resource that one environment does not have are those of the overrides.
    """
    tag, name = _tag_of(kind, path), _canonical(kind, path)[0]
    if tag is None:
        return False
    if first.resource is None or second.resource is None:
        tags = [value_at(side.overrides, (*path, tag)) for side in (first, second)]
    else:
        tags = [value_at(item.spec, (name, tag)) for item in (first.resource, second.resource)]
    return bool(tags[0] != tags[1])


def _tag_of(kind: Kind, path: Path) -> str | None:
    """Return the name of the tag of a variant, None for another field."""
    field = kind.field_named(str(path[0]))
    return field.variant.tag if field is not None and field.variant is not None else None


def _sets(value: JSON, tag: str | None) -> bool:
    """Return whether an override of a variant sets its tag, and so replaces it."""
    return tag in value if isinstance(value, Mapping) else value is not MISSING


def _canonical(kind: Kind, path: Path) -> Path:
    """Return a path of the files by the name of its field."""
    field = kind.field_named(str(path[0]))
    return (field.name, *path[1:]) if field is not None else path


def _is_related(path: Path, other: Path) -> bool:
    """Return whether one of two paths contains the other."""
    length = min(len(path), len(other))
    return path[:length] == other[:length]


_Place: TypeAlias = tuple[str, str, str, int]
"""Kind, parent, key or name, and a number for objects of one name."""


class LiveSide(Struct, frozen=True):
    """The live state of an environment, matched with its resources."""

    environment: str
    matching: Matching

    def parents(self) -> dict[Identity, str]:
        """Return what objects are called as parents: the key of their resource, or their name."""
        owners = self.matching.owners
        return {
            (kind, item.id): owners[kind, item.id].key if (kind, item.id) in owners else item.name
            for kind, items in self.matching.live.objects.items()
            for item in items
        }

    def with_names(self, kind: Kind, item: LiveObject) -> LiveObject:
        """Return an object with names in place of ids of integrations, which were read."""
        table = self.matching.live.integrations.get(item.parent_id or "")
        return replace(item, body=named(kind, item.body, table)) if table is not None else item

    def objects(self) -> dict[_Place, tuple[Address, LiveObject]]:
        """Return its objects, without ignored ones, by what they are compared by."""
        parents = self.parents()
        objects: dict[_Place, tuple[Address, LiveObject]] = {
            (address.kind, "", address.key, 0): (address, match.live)
            for address, match in self.matching.matches.items()
            if match.live is not None
        }
        numbers = Counter[tuple[str, str, str]]()
        for item in self.matching.unmanaged:
            parent = parents.get(
                (kinds_by_name()[item.kind].parent or "", item.parent_id or ""), ""
            )
            # A key has no space before it, so no name is taken for one.
            place = item.kind, parent, f" {item.name.strip()}"
            objects[*place, numbers[place]] = item.address, item
            numbers[place] += 1
        return objects


def compare_live(
    first: LiveSide,
    second: LiveSide,
    *,
    intents: Mapping[Address, Mapping[Path, Intent | None]],
    chosen: Collection[Address] | None = None,
) -> EnvironmentComparison:
    """Compare the objects of two environments, or those of `chosen` resources.

    `intents` are the intended differences of the files.
    """
    parents = first.parents(), second.parents()
    objects, others = (
        {
            place: item
            for place, item in side.objects().items()
            if chosen is None or item[0] in chosen
        }
        for side in (first, second)
    )
    resources = []
    both = sorted(objects.keys() & others.keys())
    for place in both:
        address, item = objects[place]
        kind = kinds_by_name()[address.kind]
        values = (
            _live_values(kind, first.with_names(kind, item), parents[0]),
            _live_values(kind, second.with_names(kind, others[place][1]), parents[1]),
        )
        fields = tuple(_differences(*values, intents.get(address, {})))
        if fields:
            resources.append(ResourceDifference(address, item.name, fields))
    return EnvironmentComparison(
        first=first.environment,
        second=second.environment,
        live=True,
        only_first=_only(objects[place] for place in sorted(objects.keys() - others.keys())),
        only_second=_only(others[place] for place in sorted(others.keys() - objects.keys())),
        resources=tuple(resources),
        equal=len(both) - len(resources),
    )


def needed_in_full(matching: Matching, live: Live) -> frozenset[Identity]:
    """Return the objects of resources of which only the short form is known."""
    return frozenset(matching.owners.keys() & short_forms(live).keys())


def _only(items: Iterator[tuple[Address, LiveObject]]) -> tuple[OnlyIn, ...]:
    return tuple(OnlyIn(address, item.name) for address, item in items)


def _live_values(kind: Kind, item: LiveObject, parents: Mapping[Identity, str]) -> dict[Path, JSON]:
    """Return the comparable values of an object that are not the default, by path."""
    values: dict[Path, JSON] = {
        leaf.path: comparable(leaf.field, leaf.value)
        for leaf in field_leaves(kind.fields, item.body, live=True)
        if not is_default(leaf.field, leaf.value)
    }
    if kind.parent_key is not None and item.parent_id is not None:
        parent = parents.get((kind.parent or "", item.parent_id), item.parent_id)
        values[kind.parent_key,] = parent
    return values


def _differences(
    values: Mapping[Path, JSON],
    others: Mapping[Path, JSON],
    intents: Mapping[Path, Intent | None],
) -> Iterator[FieldDifference]:
    for path in {**values, **others}:
        value, other = values.get(path, MISSING), others.get(path, MISSING)
        if not is_same(value, other):
            intent = Intent.IDENTITY if path == _NAME else intents.get(path)
            yield FieldDifference(path, FieldSide(value), FieldSide(other), intent)
