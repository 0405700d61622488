"""What of the live side goes into files: under which keys, with which fields.

The pure half of import. Adopting changes nothing: what is chosen here is what the differ compares,
so that the plan of the files that come of it is empty.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count

from reconciler.importing.choosing import Identity, Surroundings
from reconciler.model.address import Address
from reconciler.model.field_types import MergedObject, OpenObject
from reconciler.model.kind import Field, Kind
from reconciler.model.live import LiveObject
from reconciler.model.resource import ParentRef
from reconciler.model.values import JSON, MISSING, JSONObject, Path, put_at, value_at
from reconciler.planning.leaves import Leaf, comparable, leaves, with_default

_LONGEST_KEY = 60
_MOST_CANDIDATES = 6


@dataclass(frozen=True, slots=True)
class Adoption:
    """One live object that is to be written as a resource.

    `pinned` says that only its id tells it from others.
    """

    kind: Kind
    live: LiveObject
    address: Address
    parent: ParentRef | None
    pinned: bool


def adoptions(objects: Sequence[LiveObject], around: Surroundings) -> tuple[Adoption, ...]:
    """Every object with its key: made from the name, unique, and the same in each run.

    Objects whose names give one key are told apart by the key of their parent, then by the
    environment, and then by id. An object that is claimed keeps its address.
    """
    kinds = {kind.name: kind for kind in around.kinds}
    keys = {identity: claim.key for identity, claim in around.claimed.items()}
    for kind in around.kinds:
        fresh = [
            each for each in objects if each.kind == kind.name and (kind.name, each.id) not in keys
        ]
        keys |= _keys(kind, fresh, keys, around)
    unclear = _not_alone(around)
    return tuple(
        Adoption(
            kind=kinds[each.kind],
            live=each,
            address=Address(each.kind, keys[each.kind, each.id]),
            parent=_parent(each, kinds[each.kind], keys, around),
            pinned=(each.kind, each.id) in unclear
            or each.kind in around.live.unlisted
            or _unlisted(each, kinds[each.kind]),
        )
        for each in objects
    )


def _keys(
    kind: Kind,
    objects: Sequence[LiveObject],
    known: Mapping[Identity, str],
    around: Surroundings,
) -> dict[Identity, str]:
    used = {key.casefold() for key in around.used.get(kind.name, ())}
    here = key_of(around.environment)
    elsewhere = used - {key.casefold() for key in known.values()}
    found: dict[Identity, str] = {}

    def candidates(each: LiveObject) -> tuple[str, ...]:
        name = key_of(around.name_of(each))
        own = name or kind.name.replace("_", "-")
        above = around.parent_of(each, kind)
        holder = ""
        if above is not None:
            holder = known.get((above.kind, above.id)) or key_of(around.name_of(above)) or above.id
        wide = f"{holder}-{name}" if holder else name
        plain = [name, wide] if name else []
        if name and here:
            plain = [name, f"{name}-{here}" if name in elsewhere else wide, wide, f"{wide}-{here}"]
        return (*plain, f"{own}-{each.id.split('-')[0]}", f"{own}-{each.id}")

    ways = {(kind.name, each.id): candidates(each) for each in objects}
    waiting = list(ways)
    for attempt in range(_MOST_CANDIDATES):
        tried = {each: ways[each][min(attempt, len(ways[each]) - 1)] for each in waiting}
        counts = Counter(tried.values())
        clear = {
            identity: key for identity, key in tried.items() if counts[key] == 1 and key not in used
        }
        found |= clear
        used |= set(clear.values())
        waiting = [each for each in waiting if each not in found]
    for each in waiting:
        stem = ways[each][-1]
        key = next(key for number in count(2) if (key := f"{stem}-{number}") not in used)
        found[each] = key
        used.add(key)
    return found


def key_of(name: str) -> str:
    """A key made from a name: `Straße / Web (2)` gives `strasse-web-2`; "" if nothing is left."""
    folded = unicodedata.normalize("NFKD", name.casefold())
    plain = re.sub(r"[^a-z0-9]+", "-", "".join(c for c in folded if not unicodedata.combining(c)))
    key = plain.strip("-")
    if len(key) > _LONGEST_KEY:
        key = key[:_LONGEST_KEY].rpartition("-")[0] or key[:_LONGEST_KEY]
    return key.strip("-")


def _parent(
    each: LiveObject, kind: Kind, keys: Mapping[Identity, str], around: Surroundings
) -> ParentRef | None:
    """A declared parent by its key, another by its name, or by id where the name is not alone."""
    if kind.parent is None or each.parent_id is None:
        return None
    key = keys.get((kind.parent, each.parent_id))
    if key is not None:
        return ParentRef(key=key)
    above = around.parent_of(each, kind)
    if above is None:
        return ParentRef(id=each.parent_id)
    name = around.name_of(above)
    if not name or around.has_namesakes(above):
        return ParentRef(id=each.parent_id)
    return ParentRef(name=name)


def _not_alone(around: Surroundings) -> frozenset[Identity]:
    """Objects that their name alone does not tell from others of their scope.

    Where names have to be unique, those that differ in case only are not told apart either.
    """
    found: set[Identity] = set()
    for kind in around.kinds:
        scopes: dict[tuple[str | None, str], list[LiveObject]] = {}
        for each in around.live.of(kind.name):
            name = each.name.strip()
            name = name.casefold() if kind.unique_names else name
            scopes.setdefault((each.parent_id, name), []).append(each)
            if kind.parent is not None and each.parent_id is not None:
                # One of the organization is looked for in every parent.
                scopes.setdefault((None, name), []).append(each)
        for (scope, name), members in scopes.items():
            if len(members) > 1 or not name:
                found |= {(kind.name, each.id) for each in members if each.parent_id == scope}
    return frozenset(found)


def _unlisted(each: LiveObject, kind: Kind) -> bool:
    """Whether it is of a type that no list shows, so that only its id finds it again."""
    return any(
        value_at(each.body, (known.name, variant.tag)) in variant.unlisted
        for known, variant in kind.variants
    )


@dataclass(frozen=True, slots=True)
class ManagedFields:
    """What a resource says of a live object. `stale` are keys that its type does not know."""

    values: JSONObject
    stale: tuple[Path, ...] = ()


def managed_fields(
    kind: Kind, body: JSONObject, *, explicit: AbstractSet[Path] = frozenset()
) -> ManagedFields:
    """The fields of a live body that files can hold, without secrets and defaults of the server.

    `explicit` are paths that files have to set in any case, since a default of the workspace sets
    them otherwise: what is not there is written as null, or as the server's default.
    """
    values: dict[str, JSON] = {}
    stale: list[Path] = []
    seen: set[Path] = set()
    for leaf in leaves(kind.fields, body, live=True):
        if _is_stale(kind, leaf, body):
            stale.append(leaf.path)
            continue
        value = _written(leaf.field, leaf.value)
        if leaf.path in explicit or leaf.field.required or not _is_default(leaf.field, value):
            seen.add(leaf.path)
            put_at(values, leaf.path, value)
    for path, absent in _absent(kind, body, explicit - seen):
        put_at(values, path, absent)
    for known, variant in kind.variants:
        if isinstance(values.get(known.name), dict):
            values[known.name].setdefault(variant.body, {})
    return ManagedFields(values, tuple(stale))


def declared_paths(kind: Kind, values: JSONObject) -> frozenset[Path]:
    """The paths that values as written in files set, under the kind's own names."""
    named = {
        (known.name if (known := kind.field_named(name)) is not None else name): value
        for name, value in values.items()
    }
    return frozenset(leaf.path for leaf in leaves(kind.fields, named, live=False))


def _is_default(known: Field, value: JSON) -> bool:
    compared = comparable(known, value)
    return compared == comparable(known, None) or compared is None or compared == {}


def _written(known: Field, value: JSON) -> JSON:
    """The value as a person would write it: typed, in a fixed order, a query as it is shown."""
    if known.verbatim and isinstance(value, str):
        return value
    shape = known.type
    if isinstance(shape, MergedObject):
        return shape.without_nulls(value)
    if isinstance(shape, OpenObject):
        return OpenObject().canonical(value)
    return with_default(known, value)


def _is_stale(kind: Kind, leaf: Leaf, body: JSONObject) -> bool:
    """Whether it is a key in the body of a tag that is known, and knows no such key (trap 12)."""
    known = kind.field_named(str(leaf.path[0]))
    if known is None or known.variant is None or len(leaf.path) != 3:
        return False
    variant = known.variant.variants.get(str(value_at(body, (known.name, known.variant.tag))))
    return variant is not None and leaf.path[2] not in {each.name for each in variant}


def _absent(kind: Kind, body: JSONObject, paths: AbstractSet[Path]) -> Iterator[tuple[Path, JSON]]:
    """What to write for fields that are not there and that a default of the workspace sets."""
    for path in sorted(paths, key=str):
        known = kind.field_at(path, body)
        if known is None or known.secret:
            continue
        if known.default is not MISSING:
            yield path, known.default
        elif known.clearable:
            yield path, None
