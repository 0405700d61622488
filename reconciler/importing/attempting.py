"""What import would write of live objects: texts that read back as what is live.

They are loaded as if they were files, and planned against the very objects they were made from: a
field whose plan would not be empty is left out, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.authoring.drafts import Draft
from reconciler.commands.planning import PlanRequest, decide
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import ReconcilerError
from reconciler.importing.adopting import Adoption
from reconciler.importing.choosing import Identity
from reconciler.importing.drafting import Drafting
from reconciler.importing.placing import Placing
from reconciler.importing.writable import SecretNames
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.imported import Left
from reconciler.model.kind import Kind
from reconciler.model.live import Live
from reconciler.model.values import Path, path_text, secret_refs
from reconciler.planning.matcher import Matching
from reconciler.workspace import Loaded, load

_ROUNDS = 4
"""How often what would not read back is left out before import gives up."""


@dataclass(frozen=True, slots=True)
class Found:
    """Both sides, and who belongs to whom. `mask` hides known secrets in a text."""

    workspace: WorkspaceOptions
    loaded: Loaded
    live: Live
    matching: Matching
    mask: Callable[[str], str]

    @property
    def environment(self) -> str:
        """What resources name as theirs; "" where there is nothing to choose from."""
        return self.loaded.desired.environment if len(self.loaded.environments) > 1 else ""

    @property
    def claims(self) -> dict[Identity, Address]:
        """The address of each live object that a resource claims."""
        return {
            (each.live.kind, each.live.id): address
            for address, each in self.matching.matches.items()
            if each.live is not None
        }


@dataclass(frozen=True, slots=True)
class Attempt:
    """Texts made of the objects, and which file each has got.

    `beside` are files that can't be extended, each with the one that was written instead.
    """

    texts: Mapping[str, str]
    written: Mapping[Address, tuple[Adoption, str]]
    drafting: Drafting
    beside: Mapping[str, str]


def attempt_of(
    found: Found, fresh: Sequence[Adoption], placing: Placing, runtime: Runtime
) -> Attempt:
    """Texts that read back as what is live: what does not is left out, and told."""
    dropped: dict[Address, dict[Path, str]] = {}
    outcasts: list[Left] = []
    for _ in range(_ROUNDS):
        attempt = _drafted(found, fresh, placing, dropped)
        wrong = list(_what_would_change(found, attempt, runtime))
        if not wrong:
            attempt.drafting.left += outcasts
            return attempt
        outcast: set[Address] = set()
        for each, paths in wrong:
            if paths:
                why = "the service would take the value that it shows for a change"
                dropped.setdefault(each.address, {}).update(dict.fromkeys(paths, why))
            else:
                outcasts.append(Left(each.live, (), "a plan of it would not be empty"))
                outcast.add(each.address)
        fresh = [each for each in fresh if each.address not in outcast]
    told = ", ".join(
        f"{each.address} ({', '.join(map(path_text, paths))})" for each, paths in wrong[:5]
    )
    raise ReconcilerError(
        f"a plan of what would be written is not empty: {told}",
        hint="nothing was written; leave these out, with --name or --project",
    )


def _drafted(
    found: Found,
    fresh: Sequence[Adoption],
    placing: Placing,
    dropped: Mapping[Address, Mapping[Path, str]],
) -> Attempt:
    loaded = found.loaded
    taken = {
        source.argument
        for resource in loaded.desired.in_order()
        for _, ref in secret_refs(resource.spec)
        for source in ref.sources
    }
    drafting = Drafting(
        defaults=loaded.defaults,
        environments=(found.environment,) if found.environment else (),
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
    beside = {file: name for file, name in placed.names.items() if file != name}
    return Attempt(placed.texts, written, drafting, beside)


def _what_would_change(
    found: Found, attempt: Attempt, runtime: Runtime
) -> Iterator[tuple[Adoption, tuple[Path, ...]]]:
    """Resources whose plan would not be empty, with the fields; none where that is no remedy."""
    options = found.workspace
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
