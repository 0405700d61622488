"""After the creates: look whether another client created the same objects, and act on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from reconciler.applying.change_run import ChangeRun, Creation
from reconciler.applying.scopes import Listing, Scope, Scopes
from reconciler.applying.twins import Ours, Verdict, decide
from reconciler.client import Permit, Transport, together
from reconciler.errors import Interrupted, NotFound, ServiceError
from reconciler.model.event import Listener, Twins, Withdrawing, Withdrawn
from reconciler.model.live import LiveObject
from reconciler.model.wording import printable
from reconciler.reading import live_object

LOOK_PAUSES = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0)
"""Seconds between the looks at the lists, while ours is not shown or the twin may still go."""
SHOWN_WITHIN = 10.0
"""Seconds in which a list must show what this run created."""


class _Look(Struct, frozen=True):
    """What one look at an object shows. `again`: another look may show something else."""

    result: Withdrawn | Twins | None
    again: bool = False


class TwinCheck(Struct, frozen=True):
    """Checks what a run created. `withdraw`: the policy allows it to delete its own objects."""

    transport: Transport
    scopes: Scopes
    listen: Listener
    withdraw: bool

    async def run(self, runs: Sequence[ChangeRun]) -> dict[str, Withdrawn | Twins | None]:
        """Return by change id what was withdrawn, and of what a second one exists.

        None for what exists once. A list is believed only if it shows what this run created.
        """
        left, results, waited = list(runs), dict[str, Withdrawn | Twins | None](), 0.0
        with suppress(Interrupted):
            for pause in (*LOOK_PAUSES, None):
                looks = await self._look(left, waited)
                for run, look in zip(left, looks, strict=True):
                    results[run.change.id] = look.result
                left = [run for run, look in zip(left, looks, strict=True) if look.again]
                if not left or pause is None:
                    break
                await self.transport.pause(pause, "check for duplicates")
                waited += pause
        return results

    async def _look(self, runs: Sequence[ChangeRun], waited: float) -> list[_Look]:
        created = [(run, run.creation) for run in runs if run.creation is not None]
        listings = await self.scopes.read(creation.scope for _, creation in created)
        return await together(
            self._look_at(run, creation, listings, waited) for run, creation in created
        )

    async def _look_at(
        self,
        run: ChangeRun,
        creation: Creation,
        listings: Mapping[Scope, Listing | ServiceError],
        waited: float,
    ) -> _Look:
        listing = listings[creation.scope]
        if isinstance(listing, ServiceError):
            return _Look(unchecked(run, listing.message))
        twins = [
            item
            for item in listing.named(*creation.names)
            if item.id not in creation.before and self.scopes.is_foreign(item.kind, item.id)
        ]
        is_shown = creation.live_id in listing.ids
        if not is_shown and (waited < SHOWN_WITHIN or not twins):
            because = f"the list did not show it within {SHOWN_WITHIN:g} s"
            return _Look(unchecked(run, because), again=waited < SHOWN_WITHIN)
        if not twins:
            return _Look(None)
        try:
            return await self._compare(run, creation, twins)
        except (ServiceError, Interrupted) as error:
            # Raised, a stop would end the other looks, which may have deleted their objects.
            return _Look(unchecked(run, error.message))

    async def _compare(
        self, run: ChangeRun, creation: Creation, listed: Sequence[LiveObject]
    ) -> _Look:
        """Read the objects in full, and decide which one stays."""
        async with self.transport.admitted(len(listed) + 2) as permit:
            read = await together(self.scopes.full(item, permit) for item in listed)
            twins = [twin for twin in read if twin is not None]
            if not twins:
                return _Look(None)
            request = creation.routes.read(str(creation.live_id))
            body = (await self.transport.send(request, permit=permit)).body
            ours = live_object(
                creation.routes.kind,
                body,
                expected_id=creation.live_id,
                complete=True,
                label=request.label,
            )
            decision = decide(creation.routes.kind, self._ours(creation, ours), twins)
            if decision.verdict is Verdict.WITHDRAW and decision.twin is not None:
                return await self._withdraw(run, creation, decision.twin, permit)
        result = _twins(run, twins, decision.because)
        return _Look(result, again=decision.verdict is Verdict.WAIT)

    def _ours(self, creation: Creation, live: LiveObject) -> Ours:
        kind = creation.routes.kind
        return Ours(
            live,
            creation.stored,
            confirmed=creation.confirmed,
            age=self.transport.clock() - creation.sent_at,
            removable=bool(kind.activity) and not self.scopes.has_children(kind.name),
            allowed=self.withdraw,
        )

    async def _withdraw(
        self, run: ChangeRun, creation: Creation, twin: LiveObject, permit: Permit
    ) -> _Look:
        """Delete the object that this run created."""
        live_id = str(creation.live_id)
        self.listen(Withdrawing(run.change, live_id, twin.id))
        try:
            await self.transport.send(
                creation.routes.delete(live_id), change_id=run.change.id, permit=permit
            )
        except NotFound:
            pass
        except (ServiceError, Interrupted) as error:
            because = f"the younger one was to be deleted, but: {error.message}"
            return _Look(_twins(run, [twin], because))
        return _Look(Withdrawn(run.change, live_id, twin.id))


def unchecked(run: ChangeRun, because: str) -> Twins:
    """Return that a second object of the name can't be ruled out."""
    return _twins(run, (), f"it is unknown whether there is a second one: {because}")


def _twins(run: ChangeRun, twins: Sequence[LiveObject], because: str) -> Twins:
    live_id = str(run.live_id)
    pins = "\n".join(f"  id: {printable(item)}" for item in (live_id, *(twin.id for twin in twins)))
    hint = (
        f"keep one of them and delete the others in the service; to choose it here, add one of "
        f"these lines to {run.change.address}:\n{pins}"
        if twins
        else "plan again: a second object of this name is then reported"
    )
    return Twins(run.change, live_id, tuple(sorted(twin.id for twin in twins)), because, hint)
