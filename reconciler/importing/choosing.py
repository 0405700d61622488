"""Which live objects are imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.importing.context import ImportContext, identity_of
from reconciler.model.globs import fits_any
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.suggestion import nearest


@dataclass(frozen=True, slots=True)
class Choice:
    """Which live objects to import. What is empty does not limit.

    `names` are globs of names. `parents` are globs of names, ids or keys: each selects the parent
    and what is in it. `ids` and `kinds` are not globs.
    """

    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def chosen(choice: Choice, context: ImportContext) -> tuple[LiveObject, ...]:
    """Return the objects that a choice selects, parents first, then by name and id."""
    return tuple(
        live
        for kind in context.kinds
        for live in sorted(context.live.of(kind.name), key=lambda live: (live.name, live.id))
        if _fits(live, choice) and _is_in_chosen_parent(live, choice, context)
    )


def may_be_chosen(live: LiveObject, choice: Choice, kinds: Sequence[Kind]) -> bool:
    """Return whether a choice may select an object of which only the list is read yet."""
    is_top_level = any(kind.name == live.kind and kind.parent is None for kind in kinds)
    by_name = not choice.parents or not is_top_level or _is_named(live, choice.parents)
    return by_name and _fits(live, choice)


def unmatched(choice: Choice, context: ImportContext) -> tuple[tuple[str, ...], str | None]:
    """Return the parts of a choice that fit no live object, and a name similar to the first."""
    objects = list(context.objects.values())
    top_level = [live for live in objects if context.kinds_by_name[live.kind].parent is None]
    ids = {live.id for live in objects}
    parts = (
        *(
            glob
            for glob in choice.parents
            if not any(_is_named_or_keyed(live, (glob,), context) for live in top_level)
        ),
        *(glob for glob in choice.names if not any(_is_named(live, (glob,)) for live in objects)),
        *(live_id for live_id in choice.ids if live_id not in ids),
    )
    return parts, nearest(parts[0], [live.name.strip() for live in objects]) if parts else None


def _fits(live: LiveObject, choice: Choice) -> bool:
    return (
        (not choice.kinds or live.kind in choice.kinds)
        and (not choice.ids or live.id in choice.ids)
        and (not choice.names or _is_named(live, choice.names))
    )


def _is_in_chosen_parent(live: LiveObject, choice: Choice, context: ImportContext) -> bool:
    if not choice.parents:
        return True
    is_top_level = context.kinds_by_name[live.kind].parent is None
    parent = live if is_top_level else context.parent_of(live)
    return parent is not None and _is_named_or_keyed(parent, choice.parents, context)


def _is_named_or_keyed(live: LiveObject, globs: Sequence[str], context: ImportContext) -> bool:
    claim = context.claims.get(identity_of(live))
    return _is_named(live, globs) or (claim is not None and fits_any(claim.key, globs))


def _is_named(live: LiveObject, globs: Sequence[str]) -> bool:
    name = live.name.strip()
    # A name with brackets is not its own glob.
    return live.id in globs or name in globs or fits_any(name, globs)
