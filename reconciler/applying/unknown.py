"""Search for the objects of creates whose outcome is unknown (docs/service.md, 15.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from reconciler.applying.change_run import ChangeRun, Creation
from reconciler.applying.creating import Creator
from reconciler.applying.scopes import Listing, Scope, Scopes
from reconciler.applying.verification import altered_paths
from reconciler.client import Transport, together
from reconciler.errors import ServiceError
from reconciler.model.wording import printable, several

SEARCH_PAUSES = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)
"""Seconds before the searches: a server or a proxy may give up long before the work is done."""
NOT_SEARCHED = "it was not searched for"


class Search(Struct, frozen=True):
    """Looks for all of them together, since one list shows all objects of a scope."""

    transport: Transport
    scopes: Scopes
    creator: Creator

    async def run(self, runs: Sequence[ChangeRun]) -> dict[str, str]:
        """Adopt the objects of creates; return what is unknown about the others, by change id.

        An object is adopted if it is the only new one of its name and equals what was sent.

        Raises Interrupted.
        """
        left, problems = list(runs), {run.change.id: NOT_SEARCHED for run in runs}
        for seconds in SEARCH_PAUSES:
            objects = several(len(left), "object")
            await self.transport.pause(
                seconds, f"search for {objects} whose creation was not confirmed"
            )
            problems = await self._look(left)
            left = [run for run in left if run.change.id in problems]
            if not left:
                break
        return problems

    async def _look(self, runs: Sequence[ChangeRun]) -> dict[str, str]:
        creations = {run.change.id: run.creation for run in runs if run.creation is not None}
        listings = await self.scopes.read(creation.scope for creation in creations.values())
        problems = await together(
            self._problem(run, creations[run.change.id], listings) for run in runs
        )
        return {
            run.change.id: problem
            for run, problem in zip(runs, problems, strict=True)
            if problem is not None
        }

    async def _problem(
        self, run: ChangeRun, creation: Creation, listings: Mapping[Scope, Listing | ServiceError]
    ) -> str | None:
        """Adopt the object of a create and return None, or return why it can't be adopted."""
        listing = listings[creation.scope]
        if isinstance(listing, ServiceError):
            return f"it can't be searched for: {listing.message}"
        new = [
            item
            for item in listing.named(creation.names[0])
            if item.id not in creation.before and self.scopes.is_foreign(item.kind, item.id)
        ]
        try:
            full = [item for item in await together(map(self.scopes.full, new)) if item is not None]
        except ServiceError as error:
            return f"it can't be searched for: {error.message}"
        if not full:
            return f"no object of this name appeared in {sum(SEARCH_PAUSES):g} s"
        ids = printable(", ".join(sorted(item.id for item in full)))
        if len(full) > 1:
            return f"there are {len(full)} new objects of this name (ids {ids})"
        if altered_paths(creation.routes.kind, creation.sent, full[0].body):
            return f"a new object of this name (id {ids}) differs from what was sent"
        creation.stored = full[0].body
        self.creator.note(run, full[0].id)
        return None
