"""What differs between a resource and its live object (docs/planning.md, What counts as a change).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model.declared import DEFAULTS, INTEGRATION, TYPE, Base, Resource
from tests.model.identity import Identity, Live

# Fields with their origin, and whether they are reset.
Fields = dict[str, tuple[str, bool]]


def fields_of(
    identity: Identity,
    base: Base,
    resource: Resource,
    item: Live,
    lost: Callable[[str], bool] = lambda _: False,
) -> Fields:
    """Return the fields that differ. What is ignored and `lost` does."""
    at_base = next(iter(identity.at_base(item)), None)
    found: Fields = {}
    for path in resource.values.keys() - resource.secrets:
        is_kept = resource.ignores(path) and not lost(path)
        if resource.value(path) != item.value(path) and not is_kept:
            found[path] = (_origin(base, at_base, path, resource, item), False)
    resets = [path for path, is_reset in dropped(identity, resource, item) if is_reset]
    return found | dict.fromkeys(resets, ("files", True))


def is_lost(path: str, resource: Resource, item: Live, *, moves: bool) -> bool:
    """Return whether the new object of a replacement can't have the value of the old one."""
    is_other = resource.value(TYPE) != item.value(TYPE)
    return path.startswith("destination.") and (is_other or (moves and path == INTEGRATION))


def _origin(base: Base, was: Resource | None, path: str, now: Resource, item: Live) -> str:
    if base.commit is None:
        return "unknown"
    if was is None or path not in was.values or not base.is_merged:
        return "files"
    if was.value(path) == now.value(path):
        return "live"
    return "files" if was.value(path) == item.value(path) else "both"


def dropped(identity: Identity, resource: Resource, item: Live) -> Iterator[tuple[str, bool]]:
    """Yield the fields that were set in the range and are not now, and whether they are reset.

    The last commit that mentions a field decides. The others keep their live value.
    """
    history, once = identity.history_of(resource.address, item), set[str]()
    for was in (*history, resource) if history else ():
        same = was.value(TYPE) == resource.value(TYPE)
        once -= was.unset
        once |= {path for path in was.values if same or not path.startswith("destination.")}
    has_type = resource.value(TYPE) == item.value(TYPE)
    for path in once - resource.values.keys():
        if resource.ignores(path) or (path.startswith("destination.") and not has_type):
            pass
        elif path not in {*DEFAULTS} - {"paused"} or any(path in was.secrets for was in history):
            if path != "paused" or item.value(path):
                yield path, False
        elif item.value(path) != DEFAULTS[path]:
            yield path, True


def changed_secrets(identity: Identity, resource: Resource, item: Live) -> set[str]:
    """Return the secrets whose reference or version differs from any commit of the range."""
    history = identity.history_of(resource.address, item)
    found = set()
    for path in [path for path in resource.secrets if not resource.ignores(path)]:
        before = {(was.version, was.values.get(path)) for was in history}
        if before - {(resource.version, resource.values[path])}:
            found.add(path)
    return found


def _permits(resource: Resource) -> set[str]:
    own, lists = resource.lifecycle, ("ignore_changes", "renamed_from", "beside")
    found = {f"{key} {item}" for key in lists for item in own.get(key, ())}
    found |= {key for key in ("allow_replace",) if own.get(key)}
    found |= {f"id {resource.pinned}"} if resource.pinned else set()
    return found if resource.protected else found | {"protect"}


def loosened(resource: Resource, history: list[Resource]) -> set[str]:
    """Return what a resource permits now and did not permit at a commit of the range."""
    own = _permits(resource)
    if not history:
        return {text for text in own if text.startswith("beside")}
    return set().union(*(own - _permits(was) for was in history))
