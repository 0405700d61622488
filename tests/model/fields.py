"""What differs between a resource and its live object (docs/planning.md, What counts as a change).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model.declared import DEFAULTS, INTEGRATION, TYPE, Resource
from tests.model.identity import Live
from tests.model.recorded import Record

# Fields with their origin, and whether they are reset.
Fields = dict[str, tuple[str, bool]]


def fields_of(
    record: Record, resource: Resource, item: Live, lost: Callable[[str], bool] = lambda _: False
) -> Fields:
    """Return the fields that differ. What is ignored and `lost` does."""
    was, found = record.declared(item), Fields()
    for path in resource.values.keys() - resource.secrets:
        is_kept = resource.ignores(path) and not lost(path)
        if resource.value(path) != item.value(path) and not is_kept:
            found[path] = (_origin(was, path, resource, item), False)
    resets = [path for path, is_reset in dropped(was, resource, item) if is_reset]
    return found | dict.fromkeys(resets, ("files", True))


def is_lost(path: str, resource: Resource, item: Live, *, moves: bool) -> bool:
    """Return whether the new object of a replacement can't have the value of the old one."""
    is_other = resource.value(TYPE) != item.value(TYPE)
    return path.startswith("destination.") and (is_other or (moves and path == INTEGRATION))


def _origin(was: Resource | None, path: str, now: Resource, item: Live) -> str:
    if was is None:
        return "unknown"
    if path not in was.values:
        return "files"
    if was.value(path) == now.value(path):
        return "live"
    return "files" if was.value(path) == item.value(path) else "both"


def dropped(was: Resource | None, resource: Resource, item: Live) -> Iterator[tuple[str, bool]]:
    """Yield the fields that were applied and are not set now, and whether they are reset.

    The others keep their live value.
    """
    if was is None:
        return
    same = was.value(TYPE) == resource.value(TYPE) == item.value(TYPE)
    for path in was.values.keys() - resource.unset - resource.values.keys():
        if resource.ignores(path) or (path.startswith("destination.") and not same):
            pass
        elif path not in {*DEFAULTS} - {"paused"} or path in was.secrets:
            if path != "paused" or item.value(path):
                yield path, False
        elif item.value(path) != DEFAULTS[path]:
            yield path, True


def changed_secrets(record: Record, resource: Resource, item: Live) -> set[str]:
    """Return the secrets that are sent again: all that are not ignored, or none."""
    if not record.sends(resource, item):
        return set()
    return {path for path in resource.secrets if not resource.ignores(path)}


def _permits(resource: Resource) -> set[str]:
    own, lists = resource.lifecycle, ("ignore_changes", "renamed_from", "beside")
    found = {f"{key} {item}" for key in lists for item in own.get(key, ())}
    found |= {key for key in ("allow_replace",) if own.get(key)}
    found |= {f"id {resource.pinned}"} if resource.pinned else set()
    return found if resource.protected else found | {"protect"}


def loosened(resource: Resource, was: Resource | None, merged: Resource | None) -> set[str]:
    """Return what a resource permits and did not when it was applied, or merged if it is new."""
    before = was or merged
    own = _permits(resource) - (_permits(before) if before else set())
    return own if was else {text for text in own if text.startswith("beside")}
