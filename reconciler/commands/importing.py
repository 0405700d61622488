"""The use case `import`: live objects to files. Changes nothing on the live side.

What is written is read again before it reaches the disk, and planned against the very objects it
was made from: a field whose plan would not be empty is left out, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.commands.drafting import Drafting
from reconciler.commands.placing import Layout, Placing
from reconciler.commands.planning import (
    PlanRequest,
    connected,
    decide,
    load_workspace,
    resolver_for,
)
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.config import FolderSource, Loaded, load
from reconciler.config.adoptable import SecretNames
from reconciler.config.drafts import Draft
from reconciler.config.writing import write_files
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.imported import Adopted, Imported, Left
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.values import Path, path_text, secret_refs
from reconciler.planning.adopting import (
    Adoption,
    Choice,
    Identity,
    Surroundings,
    adoptions,
    chosen,
    fits_at_a_glance,
)
from reconciler.planning.matcher import Matching, match
from reconciler.reading import Depth, read_live

_ROUNDS = 4
"""How often what would not read back is left out before import gives up."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What to import, and into which files.

    `force` writes files that are there anew, with what they hold; `dry_run` writes nothing.
    """

    workspace: WorkspaceOptions
    choice: Choice = field(default_factory=Choice)
    layout: Layout = Layout.BY_PARENT
    into: str = ""
    force: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """Both sides, and who belongs to whom."""

    options: ImportOptions
    loaded: Loaded
    live: Live
    matching: Matching
    mask: Callable[[str], str]

    @property
    def claims(self) -> dict[Identity, Address]:
        return {
            (each.live.kind, each.live.id): address
            for address, each in self.matching.matches.items()
            if each.live is not None
        }


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Texts made of the objects, not yet known to read back."""

    texts: Mapping[str, str]
    written: Mapping[Address, tuple[Adoption, str]]
    drafting: Drafting


async def import_live(options: ImportOptions, runtime: Runtime) -> Imported:
    """Write the chosen live objects into files of the workspace.

    Raises:
        InvalidConfiguration: the files that are there have errors; nothing is read.
        BadUsage: the choice means nothing that is there.
        ReconcilerError: a file would not be read, or must not be overwritten.
        AmbiguousIdentity, ServiceError.

    """
    loaded = load_workspace(options.workspace, runtime.environ)
    kinds = all_kinds()
    resolver = resolver_for(loaded, runtime.environ)
    depth = Depth(
        in_full=lambda each: fits_at_a_glance(each, options.choice, kinds),
        ids=frozenset(options.choice.ids),
    )
    async with connected(loaded, resolver, runtime) as service:
        live = await read_live(service, loaded.desired, kinds=kinds, depth=depth)
        calls = service.calls.total
    matching = match(loaded.desired, live, policy=loaded.policy, kinds=kinds)
    found = _Found(options, loaded, live, matching, resolver.mask)
    return _imported(found, runtime, calls)


def _imported(found: _Found, runtime: Runtime, calls: int) -> Imported:
    options, source = found.options, FolderSource(found.options.workspace.folder)
    placing = Placing(
        source, found.loaded.globs, all_kinds(), options.layout, options.into, options.force
    )
    wanted, ignored = _wanted(found)
    fresh, claimed, hidden = _split(found, wanted, placing)
    attempt = _attempt(found, fresh, placing, runtime)
    if options.force:
        _check_nothing_is_lost(found.loaded, attempt)
    before = {
        name: raw.decode() for name in attempt.texts if (raw := source.read(name)) is not None
    }
    if not options.dry_run:
        write_files(options.workspace.folder, attempt.texts)
    drafting = attempt.drafting
    return Imported(
        files=attempt.texts,
        before=before,
        adopted=tuple(
            Adopted(address, each.live.name, file)
            for address, (each, file) in attempt.written.items()
        ),
        claimed=claimed,
        ignored=ignored,
        refused=(*hidden, *(each for each in drafting.left if not each.path)),
        left_out=tuple(each for each in drafting.left if each.path),
        secrets=tuple(drafting.secrets),
        calls=calls,
    )


def _wanted(found: _Found) -> tuple[tuple[LiveObject, ...], tuple[LiveObject, ...]]:
    """What the choice means, apart from what the policy says never to touch."""
    choice = found.options.choice
    around = Surroundings(found.live, all_kinds(), found.claims)
    objects = chosen(choice, around)
    narrowed = choice.names or choice.ids or choice.parents
    if not objects and narrowed:
        asked = ", ".join((*choice.parents, *choice.names, *choice.ids))
        raise BadUsage(
            f"no live object fits {asked}",
            hint="globs are compared with names as the service shows them, case included",
        )
    untouchable = {(each.kind, each.id) for each in found.matching.ignored}
    ignored = tuple(each for each in objects if (each.kind, each.id) in untouchable)
    return tuple(each for each in objects if each not in ignored), ignored


def _split(
    found: _Found, wanted: Sequence[LiveObject], placing: Placing
) -> tuple[tuple[Adoption, ...], int, tuple[Left, ...]]:
    """What to write, how much is in the files already, and what has a parent nobody sees.

    With force, what is declared in a file that is written is written again.
    """
    kinds = {kind.name: kind for kind in all_kinds()}
    claims, declared = found.claims, found.loaded.declared
    around = Surroundings(found.live, all_kinds(), claims, _used_keys(found.loaded))
    orphans = tuple(
        each
        for each in wanted
        if each.parent_id is not None and around.parent_of(each, kinds[each.kind]) is None
    )
    every = adoptions([each for each in wanted if each not in orphans], around)
    new = [each for each in every if (each.live.kind, each.live.id) not in claims]
    if placing.overwrite:
        again = [
            each
            for each in every
            if each.address in declared
            and declared[each.address].document.file == placing.file_of(each)
        ]
        new = [each for each in every if each in new or each in again]
    hidden = tuple(
        Left(each, (), f"its {kinds[each.kind].parent} (id {each.parent_id}) is not there any more")
        for each in orphans
    )
    return tuple(new), len(every) - len(new), hidden


def _used_keys(loaded: Loaded) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for address in loaded.declared:
        found.setdefault(address.kind, set()).add(address.key)
    return found


def _attempt(
    found: _Found, fresh: Sequence[Adoption], placing: Placing, runtime: Runtime
) -> _Attempt:
    """Texts that read back as what is live: what does not is left out, and told."""
    dropped: dict[Address, dict[Path, str]] = {}
    outcasts: list[Left] = []
    for _ in range(_ROUNDS):
        attempt = _drafted(found, fresh, placing, dropped)
        wrong = list(_what_would_change(found, attempt, runtime))
        if not wrong:
            attempt.drafting.left += outcasts
            return attempt
        for each, paths in wrong:
            if paths:
                why = "the service would take the value that it shows for a change"
                dropped.setdefault(each.address, {}).update(dict.fromkeys(paths, why))
            else:
                outcasts.append(Left(each.live, (), "a plan of it would not be empty"))
                fresh = [other for other in fresh if other is not each]
    told = ", ".join(
        f"{each.address} ({', '.join(map(path_text, paths))})" for each, paths in wrong[:5]
    )
    raise ReconcilerError(
        f"a plan of what would be written is not empty: {told}",
        hint="nothing was written; leave these out, with --name or --project",
    )


def _drafted(
    found: _Found,
    fresh: Sequence[Adoption],
    placing: Placing,
    dropped: Mapping[Address, Mapping[Path, str]],
) -> _Attempt:
    loaded = found.loaded
    several = len(loaded.environments) > 1
    taken = {
        source.argument
        for resource in loaded.desired.in_order()
        for _, ref in secret_refs(resource.spec)
        for source in ref.sources
    }
    drafting = Drafting(
        defaults=loaded.defaults,
        environments=(loaded.desired.environment,) if several else (),
        names=SecretNames(taken),
        declared=loaded.desired.resources,
        mask=found.mask,
        dropped=dropped,
    )
    files: dict[str, list[Draft]] = {}
    made: dict[Address, tuple[Adoption, str]] = {}
    for each in fresh:
        draft = drafting.draft(each)
        if draft is not None:
            file = placing.file_of(each)
            files.setdefault(file, []).append(draft)
            made[each.address] = (each, file)
    placed = placing.texts(files)
    written = {address: (each, placed.names[file]) for address, (each, file) in made.items()}
    return _Attempt(placed.texts, written, drafting)


def _what_would_change(
    found: _Found, attempt: _Attempt, runtime: Runtime
) -> Iterator[tuple[Adoption, tuple[Path, ...]]]:
    """Resources whose plan would not be empty, with the fields; none where that is no remedy."""
    options = found.options.workspace
    loaded = load(
        options.folder,
        kinds=all_kinds(),
        environment=found.loaded.desired.environment,
        environ=runtime.environ,
        drafts=attempt.texts,
    )
    plan = decide(PlanRequest(options), loaded, found.live, base=None, runtime=runtime)
    changes: dict[Address, list[Change]] = {}
    for change in plan.changes:
        if change.action is not Action.NO_OP:
            changes.setdefault(change.address, []).append(change)
    for address, (each, _) in attempt.written.items():
        if address in changes:
            yield each, tuple(_fields_of(changes[address], each.kind))


def _fields_of(changes: Sequence[Change], kind: Kind) -> Iterator[Path]:
    toggles = {
        action: known.name
        for known in kind.fields
        if known.toggle is not None
        for action in (known.toggle.on, known.toggle.off)
    }
    for change in changes:
        if change.action is Action.UPDATE:
            yield from (each.path for each in change.fields)
        elif change.action in toggles:
            yield (toggles[change.action],)


def _check_nothing_is_lost(loaded: Loaded, attempt: _Attempt) -> None:
    """Writing a file anew must not make a resource go away that is not written again."""
    lost = [
        f"{address} ({found.document.file})"
        for address, found in sorted(loaded.declared.items(), key=lambda each: each[0])
        if found.document.file in attempt.texts and address not in attempt.written
    ]
    if lost:
        raise ReconcilerError(
            f"--force would drop what is not imported: {', '.join(lost)}",
            hint="import it too, or move it to another file first; nothing was written",
        )
