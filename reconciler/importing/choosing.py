"""Which live objects an import means, and what stands around them.

The first half of deciding what goes into files; `adopting` says as what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject

Identity = tuple[str, str]
"""Kind and id of a live object."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which live objects are wanted; what is empty does not narrow.

    `names` are globs of names, `ids` ids, `parents` globs of names, ids or keys: such a parent
    itself, and what is in it. `kinds` are names of kinds.
    """

    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The live side, who claims what already, and the keys that are used, by kind.

    `environment` tells keys apart that others use for the same name, "" where there is just one.
    `unspeakable` are objects whose name must not be written.
    """

    live: Live
    kinds: Sequence[Kind]
    claimed: Mapping[Identity, Address] = field(default_factory=dict)
    used: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    environment: str = ""
    unspeakable: AbstractSet[Identity] = frozenset()
    _by_identity: dict[Identity, LiveObject] = field(default_factory=dict, init=False, repr=False)
    _alike: Counter[tuple[str, str]] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        for kind in self.kinds:
            for each in self.live.of(kind.name):
                self._by_identity[kind.name, each.id] = each
                self._alike[kind.name, each.name.strip()] += 1

    def parent_of(self, each: LiveObject, kind: Kind) -> LiveObject | None:
        """The live object that contains another one."""
        if kind.parent is None or each.parent_id is None:
            return None
        return self._by_identity.get((kind.parent, each.parent_id))

    def name_of(self, each: LiveObject) -> str:
        """Its name as files may have it, "" where they may not."""
        return "" if (each.kind, each.id) in self.unspeakable else each.name.strip()

    def has_namesakes(self, each: LiveObject) -> bool:
        """Whether another object of its kind has the same name, wherever it is."""
        return self._alike[each.kind, each.name.strip()] > 1


def chosen(choice: Choice, around: Surroundings) -> tuple[LiveObject, ...]:
    """The objects that a choice means, parents first, then by name and id."""
    found: list[LiveObject] = []
    for kind in around.kinds:
        if choice.kinds and kind.name not in choice.kinds:
            continue
        objects = [each for each in around.live.of(kind.name) if _fits(each, kind, choice, around)]
        found += sorted(objects, key=lambda each: (each.name, each.id))
    return tuple(found)


def fits_at_a_glance(each: LiveObject, choice: Choice, kinds: Sequence[Kind]) -> bool:
    """Whether an object may be meant, told from its list alone. True is no promise."""
    kind = next(kind for kind in kinds if kind.name == each.kind)
    if choice.kinds and kind.name not in choice.kinds:
        return False
    if choice.parents and kind.parent is None and not _named(each, choice.parents):
        return False
    return _fits_by_name(each, choice)


def unfitting(choice: Choice, around: Surroundings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of a choice that fit no object at all, and names like the first of them."""
    objects = [each for kind in around.kinds for each in around.live.of(kind.name)]
    holders = [
        each for kind in around.kinds if kind.parent is None for each in around.live.of(kind.name)
    ]
    keys = [
        claim.key
        for each in holders
        if (claim := around.claimed.get((each.kind, each.id))) is not None
    ]
    ids = {each.id for each in objects}
    unfit = [
        *(
            glob
            for glob in choice.parents
            if not any(_named(each, (glob,)) for each in holders)
            and not any(fnmatchcase(key, glob) for key in keys)
        ),
        *(glob for glob in choice.names if not any(_named(each, (glob,)) for each in objects)),
        *(each for each in choice.ids if each not in ids),
    ]
    names = {each.name.strip().casefold(): each.name.strip() for each in objects}
    close = get_close_matches(unfit[0].casefold(), names, n=1) if unfit else []
    return tuple(unfit), tuple(names[each] for each in close)


def _fits_by_name(each: LiveObject, choice: Choice) -> bool:
    if choice.ids and each.id not in choice.ids:
        return False
    return not choice.names or _named(each, choice.names)


def _fits(each: LiveObject, kind: Kind, choice: Choice, around: Surroundings) -> bool:
    if not _fits_by_name(each, choice):
        return False
    if not choice.parents:
        return True
    holder = each if kind.parent is None else around.parent_of(each, kind)
    if holder is None:
        return False
    claim = around.claimed.get((holder.kind, holder.id))
    by_key = claim is not None and any(fnmatchcase(claim.key, glob) for glob in choice.parents)
    return by_key or _named(holder, choice.parents)


def _named(each: LiveObject, globs: Sequence[str]) -> bool:
    return any(
        each.id == glob or each.name.strip() == glob or fnmatchcase(each.name.strip(), glob)
        for glob in globs
    )
