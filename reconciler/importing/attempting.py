"""The texts that import writes: texts whose plan against the same live state is empty.

They are planned before they are written. A field whose plan is not empty is left out and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from reconciler.authoring.drafts import Draft
from reconciler.errors import ReconcilerError
from reconciler.importing.adopting import Adoption
from reconciler.importing.context import ImportContext
from reconciler.importing.drafting import Drafting
from reconciler.importing.placing import Placing
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.imported import Left
from reconciler.model.kind import Kind
from reconciler.model.plan import Plan
from reconciler.model.values import Path, path_text, secret_refs
from reconciler.workspace.loading import Loaded

_ROUNDS = 4
"""How often fields with a change are left out before import gives up."""

Replan: TypeAlias = Callable[[Mapping[str, str]], Plan]
"""Plans the workspace with texts in place of files, against the live state that was read."""


class Attempt(Struct, frozen=True):
    """Texts by file, and the adoption and file of each resource in them.

    `beside` maps files that can't be extended to the files that are written instead.
    """

    texts: Mapping[str, str]
    written: Mapping[Address, tuple[Adoption, str]]
    drafting: Drafting
    beside: Mapping[str, str]


def attempt_of(
    new: Sequence[Adoption],
    context: ImportContext,
    loaded: Loaded,
    placing: Placing,
    replan: Replan,
) -> Attempt:
    """Return texts with an empty plan, without the fields and objects that prevent one."""
    dropped: dict[Address, dict[Path, str]] = {}
    refused: list[Left] = []
    for _ in range(_ROUNDS):
        attempt = _drafted(new, context, loaded, placing, dropped)
        changed = list(_changed(attempt, replan(attempt.texts)))
        if not changed:
            attempt.drafting.left += refused
            return attempt
        for adoption, paths in changed:
            reasons = dict.fromkeys(paths, "the plan of its live value would not be empty")
            dropped.setdefault(adoption.address, {}).update(reasons)
        hopeless = [adoption for adoption, paths in changed if not paths]
        refused += (Left(adoption.live, (), "its plan would not be empty") for adoption in hopeless)
        new = [adoption for adoption in new if adoption not in hopeless]
    listed = ", ".join(
        f"{adoption.address} ({', '.join(map(path_text, paths))})"
        for adoption, paths in changed[:5]
    )
    raise ReconcilerError(
        f"the plan of the imported files would not be empty: {listed}; nothing was written",
        hint="exclude these resources with --name or --project",
    )


def _drafted(
    new: Sequence[Adoption],
    context: ImportContext,
    loaded: Loaded,
    placing: Placing,
    dropped: Mapping[Address, Mapping[Path, str]],
) -> Attempt:
    used = {
        source.argument
        for resource in loaded.desired.in_order()
        for _, ref in secret_refs(resource.spec)
        for source in ref.sources
    }
    drafting = Drafting(
        defaults=loaded.defaults,
        environment=context.environment,
        variables=used,
        resources=loaded.desired.resources,
        mask=context.mask,
        dropped=dropped,
    )
    drafts: dict[str, list[Draft]] = {}
    drafted: dict[Address, tuple[Adoption, str]] = {}
    for adoption in new:
        draft = drafting.draft(adoption)
        if draft is not None:
            file = placing.file_of(adoption)
            drafts.setdefault(file, []).append(draft)
            drafted[adoption.address] = (adoption, file)
    placed = placing.texts(drafts)
    return Attempt(
        dict(placed.values()),
        {address: (adoption, placed[file][0]) for address, (adoption, file) in drafted.items()},
        drafting,
        {file: name for file, (name, _) in placed.items() if file != name},
    )


def _changed(attempt: Attempt, plan: Plan) -> Iterator[tuple[Adoption, tuple[Path, ...]]]:
    """Yield resources with a change, and the fields to leave out; none if that would not help."""
    changes: dict[Address, list[Change]] = {}
    for change in plan.effective:
        changes.setdefault(change.address, []).append(change)
    for address, (adoption, _) in attempt.written.items():
        if address in changes:
            yield adoption, tuple(_fields_of(changes[address], adoption.kind))


def _fields_of(changes: Sequence[Change], kind: Kind) -> Iterator[Path]:
    toggles = {
        action: field.name
        for field in kind.fields
        if field.toggle is not None
        for action in (field.toggle.on, field.toggle.off)
    }
    for change in changes:
        if change.action is Action.UPDATE:
            yield from (field.path for field in change.fields)
        elif change.action in toggles:
            yield (toggles[change.action],)
