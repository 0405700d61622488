"""The use case `import`: live objects to files. Changes nothing on the live side.

What is written is read again before it reaches the disk, and planned against the very objects it
was made from (`attempting`). What is told of it all is gathered in `Imported`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.authoring.writing import write_files
from reconciler.commands.planning import (
    connected,
    errors_masked,
    load_workspace,
    resolver_for,
)
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import BadUsage, DiagnosticCollector
from reconciler.importing.adopting import Adoption, adoptions
from reconciler.importing.attempting import Attempt, Found, attempt_of
from reconciler.importing.choosing import (
    Choice,
    Identity,
    Surroundings,
    chosen,
    fits_at_a_glance,
    unfitting,
)
from reconciler.importing.overwriting import check_nothing_is_lost, gone_with
from reconciler.importing.placing import Layout, Placing
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.imported import Adopted, Imported, Left, Namesake, Side
from reconciler.model.live import LiveObject
from reconciler.planning.matcher import match
from reconciler.reading import Depth, read_live
from reconciler.workspace import FolderSource, Loaded
from reconciler.workspace.redact_file import redact_file
from reconciler.workspace.yaml.loader import parse


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


def _check_kinds(choice: Choice) -> None:
    known = [kind.name for kind in all_kinds()]
    for name in choice.kinds:
        if name not in known:
            raise BadUsage(f"unknown kind '{name}'", hint=f"kinds: {', '.join(known)}")


async def import_live(options: ImportOptions, runtime: Runtime) -> Imported:
    """Write the chosen live objects into files of the workspace.

    Raises:
        InvalidConfiguration: the files that are there have errors; nothing is read.
        BadUsage: the choice means nothing that is there.
        ReconcilerError: a file would not be read, or must not be overwritten.
        AmbiguousIdentity, ServiceError.

    """
    _check_kinds(options.choice)
    loaded = load_workspace(options.workspace, runtime.environ)
    placing = Placing(
        FolderSource(options.workspace.folder),
        loaded.globs,
        all_kinds(),
        options.layout,
        options.into,
        options.force,
    )
    kinds, choice = all_kinds(), options.choice
    resolver = resolver_for(loaded, runtime.environ)
    depth = Depth(
        in_full=lambda each: fits_at_a_glance(each, choice, kinds),
        ids=frozenset(choice.ids),
        holders=frozenset(choice.parents),
    )
    async with connected(loaded, resolver, runtime) as service:
        live = await read_live(service, loaded.desired, kinds=kinds, depth=depth)
        calls = service.calls.total
    with errors_masked(resolver):
        matching = match(loaded.desired, live, policy=loaded.policy, kinds=kinds)
        found = Found(options.workspace, loaded, live, matching, resolver.mask)
        done = _decided(found, options, placing, runtime, calls)
        if not options.dry_run:
            # Whoever pressed Ctrl-C while this was worked out is heard here, before a file changes.
            await asyncio.sleep(0)
            write_files(options.workspace.folder, done.files)
    return done


def _decided(
    found: Found, options: ImportOptions, placing: Placing, runtime: Runtime, calls: int
) -> Imported:
    """All that is to be written and told. Nothing is written yet."""
    around = Surroundings(
        found.live, all_kinds(), found.claims, _used_keys(found.loaded), found.environment
    )
    wanted, ignored, unmatched = _wanted(found, options.choice, around)
    fresh, claimed, hidden = _split(found, wanted, placing, around)
    attempt = attempt_of(found, fresh, placing, runtime)
    before = {
        name: raw.decode("utf-8-sig")
        for name in attempt.texts
        if (raw := placing.source.read(name)) is not None
    }
    if options.force:
        check_nothing_is_lost(found.loaded, attempt)
    drafting = attempt.drafting
    return Imported(
        files=attempt.texts,
        before=before,
        adopted=tuple(
            Adopted(address, each.live.id, each.live.name, file)
            for address, (each, file) in attempt.written.items()
        ),
        claimed=claimed,
        ignored=ignored,
        refused=(*hidden, *(each for each in drafting.left if not each.path)),
        left_out=tuple(each for each in drafting.left if each.path),
        secrets=tuple(drafting.secrets),
        calls=calls,
        unmatched=unmatched,
        beside=attempt.beside,
        gone=tuple(gone_with(found.loaded, attempt, before)) if options.force else (),
        namesakes=tuple(_namesakes(found, attempt, around)),
        sides=_sides(attempt, before) if options.dry_run else {},
        written=not options.dry_run,
        mask=found.mask,
    )


def _wanted(
    found: Found, choice: Choice, around: Surroundings
) -> tuple[tuple[LiveObject, ...], tuple[LiveObject, ...], tuple[str, ...]]:
    """What the choice means, apart from what the policy says never to touch, and what fits nothing.

    Raises BadUsage where nothing at all fits.
    """
    objects = chosen(choice, around)
    unmatched, similar = unfitting(choice, around)
    if not objects and (choice.names or choice.ids or choice.parents):
        asked = ", ".join((*choice.parents, *choice.names, *choice.ids))
        together = "" if unmatched else " together"
        close = f"did you mean '{similar[0]}'? " if similar else ""
        raise BadUsage(
            f"no live object fits {asked}{together}",
            hint=f"{close}globs are compared with names as the service shows them, case included; "
            "--project with ids and keys too",
        )
    untouchable = {(each.kind, each.id) for each in found.matching.ignored}
    ignored = tuple(each for each in objects if (each.kind, each.id) in untouchable)
    wanted = tuple(each for each in objects if (each.kind, each.id) not in untouchable)
    return wanted, ignored, unmatched


def _split(
    found: Found, wanted: Sequence[LiveObject], placing: Placing, around: Surroundings
) -> tuple[tuple[Adoption, ...], int, tuple[Left, ...]]:
    """What to write, how much is in the files already, and what can't be written at all.

    With force, what is declared in a file that is written is written again.
    """
    claims, declared = around.claimed, found.loaded.declared
    around = replace(around, unspeakable=_unspeakable(found, wanted, claims))
    hidden = {(each.live.kind, each.live.id): each for each in _hidden(wanted, around)}
    every = adoptions([each for each in wanted if (each.kind, each.id) not in hidden], around)

    def is_written(each: Adoption) -> bool:
        if (each.live.kind, each.live.id) not in claims:
            return True
        there = declared.get(each.address)
        return (
            placing.overwrite and there is not None and there.document.file == placing.file_of(each)
        )

    new = tuple(each for each in every if is_written(each))
    return new, len(every) - len(new), tuple(hidden.values())


def _hidden(wanted: Sequence[LiveObject], around: Surroundings) -> Iterator[Left]:
    kinds = {kind.name: kind for kind in around.kinds}
    for each in wanted:
        kind = kinds[each.kind]
        if (each.kind, each.id) in around.unspeakable:
            yield Left(each, (), "its name holds the value of a secret of this workspace")
        elif each.parent_id is not None and around.parent_of(each, kind) is None:
            yield Left(each, (), f"its {kind.parent} (id {each.parent_id}) is not there any more")


def _unspeakable(
    found: Found,
    wanted: Sequence[LiveObject],
    claims: Mapping[Identity, Address],
) -> frozenset[Identity]:
    """Objects with a known secret in their names, from which keys and names of files are made."""
    holders = [
        each for kind in all_kinds() if kind.parent is None for each in found.live.of(kind.name)
    ]
    fresh = [each for each in (*wanted, *holders) if (each.kind, each.id) not in claims]
    together = "\n".join(each.name for each in fresh)
    if found.mask(together) == together:
        return frozenset()
    return frozenset((each.kind, each.id) for each in fresh if found.mask(each.name) != each.name)


def _used_keys(loaded: Loaded) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for address in loaded.declared:
        found.setdefault(address.kind, set()).add(address.key)
    return found


def _namesakes(found: Found, attempt: Attempt, around: Surroundings) -> Iterator[Namesake]:
    """New resources whose name another one has in other environments, under such a parent."""
    here = found.loaded.desired.resources
    elsewhere = {
        _place_of(address, found.loaded): address
        for address in found.loaded.declared
        if address not in here
    }
    for address, (each, _) in attempt.written.items():
        above = around.parent_of(each.live, each.kind)
        place = (address.kind, each.live.name.strip(), above.name.strip() if above else "")
        if place in elsewhere:
            yield Namesake(address, elsewhere[place])


def _place_of(address: Address, loaded: Loaded) -> tuple[str, str, str]:
    """Kind, name and name of the parent of a declared resource, as far as the file tells."""
    kind = next(each for each in all_kinds() if each.name == address.kind)
    body = loaded.declared[address].body
    above = ""
    if kind.parent is not None and kind.parent_key is not None:
        key = body.get(kind.parent_key)
        holder = loaded.declared.get(Address(kind.parent, str(key)))
        above = str(holder.body.get("name")).strip() if holder is not None else str(key)
    return address.kind, str(body.get("name")).strip(), above


def _sides(attempt: Attempt, before: Mapping[str, str]) -> dict[str, tuple[Side, Side]]:
    """Each file before and after, for a difference.

    Literal secrets can only stand in what was there before: a line is hidden where it was.
    """
    found: dict[str, tuple[Side, Side]] = {}
    for name, text in attempt.texts.items():
        old = before.get(name, "")
        shown = redact_file(parse(old.encode(), "", DiagnosticCollector()))
        hidden = dict(zip(old.splitlines(), shown, strict=True))
        lines = text.splitlines()
        found[name] = (
            Side(tuple(old.splitlines(keepends=True)), shown),
            Side(
                tuple(text.splitlines(keepends=True)),
                tuple(hidden.get(line, line) for line in lines),
            ),
        )
    return found
