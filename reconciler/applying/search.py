"""Look for objects of creates with an unknown outcome."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from reconciler.applying.change_run import ChangeRun, Creation
from reconciler.applying.checks import altered_paths
from reconciler.applying.scopes import Listing, Scopes
from reconciler.client import together
from reconciler.errors import ServiceError
from reconciler.model.live import LiveObject
from reconciler.model.text import printable, several

SEARCH_PAUSES = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)
"""Seconds before the searches: a server or a proxy may give up long before the work is done."""
NOT_SEARCHED = "it was not searched for"


class Search(Struct, frozen=True):
    """Looks for all of them together, since one list shows all objects of a scope."""

    scopes: Scopes

    async def run(self, runs: Sequence[ChangeRun]) -> dict[str, str]:
        """Adopt the objects of creates; return what is unknown about the others, by change id.

        An object is adopted if it is the only new one of its name and equals what was sent.

        Raises Interrupted.
        """
        left, problems = list(runs), {run.change.id: NOT_SEARCHED for run in runs}
        for seconds in SEARCH_PAUSES:
            objects = several(len(left), "object")
            await self.scopes.transport.pause(
                seconds, f"search for {objects} whose creation was not confirmed"
            )
            problems = await self._look(left)
            left = [run for run in left if run.change.id in problems]
            if not left:
                break
        return problems

    async def _look(self, runs: Sequence[ChangeRun]) -> dict[str, str]:
        created = [(run, run.creation) for run in runs if run.creation is not None]
        listings = await self.scopes.read(creation.scope for _, creation in created)
        problems = await together(
            self._problem(run, creation, listings[creation.scope]) for run, creation in created
        )
        return {
            run.change.id: problem
            for (run, _), problem in zip(created, problems, strict=True)
            if problem is not None
        }

    async def _problem(
        self, run: ChangeRun, creation: Creation, listing: Listing | ServiceError
    ) -> str | None:
        """Adopt the object of a create and return None, or return why it can't be adopted."""
        if isinstance(listing, ServiceError):
            return f"it can't be searched for: {listing.message}"
        new = _others(self.scopes, creation, listing.named(creation.name))
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
        run.created(full[0].id)
        self.scopes.created[run.change.address.kind].add(full[0].id)
        return None


def _others(scopes: Scopes, creation: Creation, listed: Sequence[LiveObject]) -> list[LiveObject]:
    """Return the objects that were not there before a create, and that this run did not create."""
    return [
        item
        for item in listed
        if item.id not in creation.before and scopes.is_foreign(item.kind, item.id)
    ]
