"""What the files loosen and take over since the git base, by live object, never by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from reconciler.model.address import Address
from reconciler.model.plan import Note
from reconciler.model.resource import Desired, Resource
from reconciler.model.text import listed, printable, quoted, several
from reconciler.planning.base import Base
from reconciler.planning.matcher import Matching

_MOST = 10
_SETTINGS = attrgetter("lifecycle", "pinned_id")
_OF_NEW = "`lifecycle.beside"
"""What loosens also a resource that the base does not have."""


def notes_since_base(desired: Desired, matching: Matching, base: Base | None) -> Iterator[Note]:
    """Yield a note on each setting that is looser, and on each object that the base lacks."""
    former = (base.desired, *base.later) if base is not None else ()
    loosened: dict[str, list[Address]] = {}
    for was in former:
        loosened |= {text: [] for text in _of_workspace(desired, was)}
    adopted: list[Address] = []
    for address, match in matching.matches.items() if former else ():
        declared = matching.former.declared(address, match.live)
        if declared.adopted:
            adopted.append(address)
        for text in _of_resource(match.resource, declared.versions):
            loosened.setdefault(text, []).append(address)
    # Removed protection comes first: other texts begin with a backtick.
    for text, addresses in sorted(loosened.items(), key=lambda item: item[0].startswith("`")):
        users = listed(sorted(addresses), _MOST)
        yield Note("loosened", f"{text}: {users}" if users else text)
    if adopted:
        objects = several(len(adopted), "live object")
        yield Note("adopted", f"{objects} managed now and not at the git base (list: --verbose)")
    for address in sorted(adopted):
        yield Note("adopted", "not managed at the git base", address)


def _of_resource(resource: Resource, versions: Sequence[Resource]) -> list[str]:
    """Return what a resource permits now and did not permit at any of its versions."""
    changed = [was for was in versions if _SETTINGS(was) != _SETTINGS(resource)]
    own = _permissions(resource) if changed or not versions else []
    if not versions:
        return [text for text in own if text.startswith(_OF_NEW)]
    return [text for text in own if any(text not in _permissions(was) for was in changed)]


def _permissions(resource: Resource) -> list[str]:
    """Return each setting that permits more than another value of it, as text."""
    texts = [] if resource.lifecycle.protect else ["protection is removed"]
    texts += [f"`id: {printable(resource.pinned_id)}` is new"] if resource.pinned_id else []
    for name, value in resource.lifecycle.as_json().items():
        if isinstance(value, list):
            texts += [f"`lifecycle.{name}: {quoted(str(item))}` is new" for item in value]
        elif value and name != "protect":
            texts.append(f"`lifecycle.{name}` is new")
    return texts


def _of_workspace(now: Desired, was: Desired) -> Iterator[str]:
    """Yield what the workspace file permits and lists, and did not."""
    if now.policy is None or was.policy is None:
        return
    for key in now.policy.looser_than(was.policy):
        yield f"`policy` is looser: {key}"
    for name in ("env", "secrets", "secret_files"):
        new = sorted(set(getattr(now.lists, name)) - set(getattr(was.lists, name)))
        yield from (f"`{name}: [{quoted(item)}]` is new" for item in new)
