"""The use case `promote`: give an environment the values of another one, and report it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from reconciler.authoring.comparing import Pair, compare_files
from reconciler.authoring.difference import EditedFiles, file_changes
from reconciler.authoring.editing import Edit
from reconciler.authoring.environments import OnlyIn, promotions
from reconciler.authoring.placing import check_files, edited_texts
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.plan import Plan, encode
from reconciler.model.text import listed, printable, several
from reconciler.workspace.writing import write_files

_MOST_LISTED = 10


class Promoted(EditedFiles, frozen=True, kw_only=True):
    """A promotion: `promote --format json`."""

    version = 1
    schema = "promote"

    first: str
    """The environment that has the values."""
    second: str
    """The environment that gets them."""
    edited: tuple[Address, ...]
    """Resources whose overrides change."""
    added: tuple[Address, ...] = ()
    """Resources that come into the second environment."""
    removed: tuple[Address, ...] = ()
    """Resources that leave the second environment."""
    left: tuple[OnlyIn, ...] = ()
    """Other resources that only the second environment has."""
    plan: dict[str, Any] | None = None
    """The plan of the second environment, as in the schema `plan`; null without one."""

    def with_plan(self, plan: Plan) -> Promoted:
        """Return the same with the plan that follows."""
        return replace(self, plan=orjson.loads(encode(plan)))


class PromoteRequest(Struct, frozen=True):
    """What to promote: resources that `names` select, all if empty.

    `prune` takes resources out of the second environment that the first does not have. Without
    `write`, nothing is changed.
    """

    workspace: WorkspaceOptions
    first: str
    second: str
    names: tuple[str, ...] = ()
    prune: bool = False
    write: bool = True


def promote(request: PromoteRequest, runtime: Runtime) -> Promoted:
    """Edit overrides and lists of environments: in all files, or in none.

    Raises:
        InvalidConfiguration: the files have errors, or would have.
        BadUsage: an unknown environment or resource.
        ReconcilerError: a place cannot be edited safely.

    """
    environments = request.first, request.second
    pair = Pair.open(request.workspace, environments, runtime)
    compared = compare_files(pair, request.names)
    added = _with_parents(pair, {item.address for item in compared.only_first})
    removed = {item.address for item in compared.only_second} if request.prune else set()
    edits: dict[Address, list[Edit]] = {
        **{item.address: [*_overrides(pair, item.address)] for item in compared.differing},
        **{item: [_listed(pair, item), *_overrides(pair, item)] for item in sorted(added)},
        **{address: [_listed(pair, address, remove=True)] for address in sorted(removed)},
    }
    declared = pair.first.loaded.declared
    pairs = [(declared[address].document, edit) for address in edits for edit in edits[address]]
    pairs.sort(key=lambda pair: pair[0].file)
    folder = request.workspace.folder
    texts = edited_texts(folder, pairs)
    check_files(folder, runtime.environ, texts)
    if request.write:
        write_files(folder, texts)
    return Promoted(
        first=request.first,
        second=request.second,
        texts=texts,
        changes=file_changes((document for document, _ in pairs), texts),
        edited=tuple(item.address for item in compared.differing),
        added=tuple(sorted(added)),
        removed=tuple(sorted(removed)),
        left=() if request.prune else compared.only_second,
        written=request.write,
    )


def _with_parents(pair: Pair, only_first: Iterable[Address]) -> set[Address]:
    """Return resources to add to the second environment, with parents that it does not have."""
    first, second = (session.loaded.desired.resources for session in (pair.first, pair.second))
    added: set[Address] = set()
    waiting = [*only_first]
    while waiting:
        address = waiting.pop()
        added.add(address)
        parent, kind = first[address].parent, kinds_by_name()[address.kind].parent
        if parent is not None and parent.key is not None and kind is not None:
            above = Address(kind, parent.key)
            if above not in second and above not in added:
                waiting.append(above)
    return added


def _overrides(pair: Pair, address: Address) -> Iterator[Edit]:
    """Yield the edits of the overrides of the second environment."""
    declaration = pair.first.loaded.declared[address]
    kind = kinds_by_name()[address.kind]
    environment = pair.second.loaded.desired.environment
    for item in promotions(kind, *pair.sides(address)):
        yield Edit((*declaration.path, "overrides", environment, *item.path), item.value)


def _listed(pair: Pair, address: Address, *, remove: bool = False) -> Edit:
    """Return the edit that adds the second environment to the list of a resource, or removes it."""
    declaration = pair.first.loaded.declared[address]
    environment = pair.second.loaded.desired.environment
    given = declaration.body.get("environments")
    names = given if isinstance(given, list) else pair.first.loaded.environments
    kept = [name for name in names if name != environment]
    value = kept if remove else [*kept, environment]
    return Edit((*declaration.path, "environments"), value)


def promotion_summary(promoted: Promoted) -> str:
    """Return what was promoted, or that nothing is to promote, and what is left."""
    first, second = printable(promoted.first), printable(promoted.second)
    counts = {
        f"changed in {second}": promoted.edited,
        f"added to {second}": promoted.added,
        f"taken out of {second}": promoted.removed,
    }
    parts = [f"{several(len(items), 'resource')} {verb}" for verb, items in counts.items() if items]
    verb = "Promoted" if promoted.written else "Would promote"
    lines = [f"{verb} {first} to {second}: {', '.join(parts)}"]
    if not promoted.texts:
        lines = [f"Nothing to promote: {second} differs from {first} only as intended"]
    if promoted.left:
        names = listed([item.address for item in promoted.left], _MOST_LISTED)
        lines.append(f"note: only in {second}, and left there: {printable(names)} (see --prune)")
    return "".join(f"{line}\n" for line in lines)
