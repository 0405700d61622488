"""Look for objects of creates with an unknown outcome, and for those that two clients created."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum, auto

from msgspec import Struct

from reconciler.applying.change_run import ChangeRun, Creation
from reconciler.applying.checks import altered_paths
from reconciler.applying.scopes import LONGEST_AGE as LONGEST_AGE_OF_LISTS
from reconciler.applying.scopes import Listing, Scopes
from reconciler.client import together
from reconciler.errors import Expired, Interrupted, NotFound, ServiceError
from reconciler.model.comparison import live_values
from reconciler.model.event import Listener, Twins, Withdrawing, Withdrawn
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.text import printable, several
from reconciler.model.values import MISSING, JSONObject, value_at
from reconciler.reading import read_object

SEARCH_PAUSES = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)
"""Seconds before the searches: a server or a proxy may give up long before the work is done."""
NOT_SEARCHED = "it was not searched for"
LOOK_PAUSES = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0)
"""Seconds between the looks at the lists, while ours is not shown or the twin may still go."""
SHOWN_WITHIN = 10.0
"""Seconds in which a list must show what this run created."""
LONGEST_AGE = 120.0
"""Seconds after which an object of this run is not withdrawn any more."""


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
        new = _others(self.scopes, creation, listing.named(creation.names[0]))
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


class _Look(Struct, frozen=True):
    """What one look at an object shows. `again`: another look may show something else."""

    result: Withdrawn | Twins | None
    again: bool = False


class TwinCheck(Struct, frozen=True):
    """Checks what a run created. `withdraw`: the policy allows it to delete its own objects."""

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
                await self.scopes.transport.pause(pause, "check for duplicates")
                waited += pause
        return results

    async def _look(self, runs: Sequence[ChangeRun], waited: float) -> list[_Look]:
        created = [(run, run.creation) for run in runs if run.creation is not None]
        listings = await self.scopes.read(creation.scope for _, creation in created)
        return await together(
            self._look_at(run, creation, listings[creation.scope], waited)
            for run, creation in created
        )

    async def _look_at(
        self, run: ChangeRun, creation: Creation, listing: Listing | ServiceError, waited: float
    ) -> _Look:
        if isinstance(listing, ServiceError):
            return _Look(unchecked(run, listing.message))
        twins = _others(self.scopes, creation, listing.named(*creation.names))
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
        now = self.scopes.transport.clock()
        read = await together(map(self.scopes.full, listed))
        twins = [twin for twin in read if twin is not None]
        if not twins:
            return _Look(None)
        routes, live_id = creation.routes, str(creation.live_id)
        ours = await read_object(self.scopes.transport, routes, live_id)
        decision = decide(creation.routes.kind, self._ours(creation, ours), twins)
        if decision.verdict is Verdict.WITHDRAW and decision.twin is not None:
            return await self._withdraw(run, creation, decision.twin, now + LONGEST_AGE_OF_LISTS)
        result = _twins(run, twins, decision.because)
        return _Look(result, again=decision.verdict is Verdict.WAIT)

    def _ours(self, creation: Creation, live: LiveObject) -> Ours:
        kind = creation.routes.kind
        return Ours(
            live,
            creation.stored,
            confirmed=creation.confirmed,
            age=self.scopes.transport.clock() - creation.sent_at,
            removable=bool(kind.activity) and not self.scopes.has_children(kind.name),
            allowed=self.withdraw,
        )

    async def _withdraw(
        self, run: ChangeRun, creation: Creation, twin: LiveObject, not_after: float
    ) -> _Look:
        """Delete the object that this run created, unless that has to wait too long."""
        live_id = str(creation.live_id)
        self.listen(Withdrawing(run.change, live_id, twin.id))
        try:
            await self.scopes.transport.send(
                creation.routes.delete(live_id), change_id=run.change.id, not_after=not_after
            )
        except NotFound:
            pass
        except (ServiceError, Interrupted, Expired) as error:
            because = f"the younger one was to be deleted, but: {error.message}"
            return _Look(_twins(run, [twin], because))
        return _Look(Withdrawn(run.change, live_id, twin.id))


def _others(scopes: Scopes, creation: Creation, listed: Sequence[LiveObject]) -> list[LiveObject]:
    """Return the objects that were not there before a create, and that this run did not create."""
    return [
        item
        for item in listed
        if item.id not in creation.before and scopes.is_foreign(item.kind, item.id)
    ]


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


class Verdict(Enum):
    """What happens to our object."""

    WITHDRAW = auto()
    """It is deleted: an older, equal object stays."""
    WAIT = auto()
    """It stays, and the other client should withdraw its own."""
    KEEP = auto()
    """Both stay, and a person decides."""


class Ours(Struct, frozen=True):
    """An object that this run created.

    live
        The object now, in full.
    stored
        Its body after the last write of this run, None if the run did not get one.
    confirmed
        Whether its id came with the answer to the create, not from a search.
    age
        Seconds since the create was sent, by the clock of this machine.
    removable
        Whether such an object may be deleted at all: it holds nothing, and shows whether it ran.
    allowed
        Whether the policy allows to delete it.
    """

    live: LiveObject
    stored: JSONObject | None
    confirmed: bool
    age: float
    removable: bool = True
    allowed: bool = True


class Decision(Struct, frozen=True):
    """A verdict. `twin` is the object that stays instead of ours; `because` says why both stay."""

    verdict: Verdict
    because: str = ""
    twin: LiveObject | None = None


def decide(kind: Kind, ours: Ours, twins: Sequence[LiveObject]) -> Decision:
    """Return what happens to our object, given the other new ones of its name and scope.

    The oldest of equal objects is never withdrawn, so at least one of them stays, whatever each
    client sees and in whatever order they look.
    """
    if not ours.removable:
        return Decision(Verdict.KEEP, f"a {kind.name} is never deleted to resolve this")
    created = {item.id: _created_at(item) for item in (ours.live, *twins)}
    if None in created.values():
        return Decision(Verdict.KEEP, "`created_at` is not known for all of them")

    def order(item: LiveObject) -> tuple[datetime, str]:
        return created[item.id] or datetime.max.replace(tzinfo=UTC), item.id

    older = [twin for twin in twins if order(twin) < order(ours.live)]
    equal = [twin for twin in older or twins if _values(kind, twin) == _values(kind, ours.live)]
    if not equal:
        return Decision(Verdict.KEEP, "they differ")
    if not older:
        return Decision(Verdict.WAIT, "the younger one was not withdrawn")
    because = _obstacle(kind, ours)
    if because:
        return Decision(Verdict.KEEP, because)
    return Decision(Verdict.WITHDRAW, twin=min(equal, key=order))


def _obstacle(kind: Kind, ours: Ours) -> str:
    """Return why our object must not be deleted, empty if it may be."""
    live, stored = ours.live, ours.stored
    obstacles = {
        "policy.withdraw is never": not ours.allowed,
        "the answer to its create was lost, so it may be of another client": not ours.confirmed,
        "it was modified after its creation": (
            stored is None or live_values(kind, live.body) != live_values(kind, stored)
        ),
        "it is not known whether it has runs": not isinstance(
            value_at(live.body, kind.activity[:1]), list
        ),
        "it has runs": value_at(live.body, kind.activity) is not MISSING,
        "it is more than two minutes old": ours.age > LONGEST_AGE,
    }
    return next((text for text, applies in obstacles.items() if applies), "")


def _values(kind: Kind, item: LiveObject) -> JSONObject:
    """Return what makes two objects equal. Of a replacement one may still have its marked name."""
    values = live_values(kind, item.body)
    return {path: value for path, value in values.items() if path != "name"}


def _created_at(item: LiveObject) -> datetime | None:
    """Return the time of creation, None without a valid one."""
    text = item.body.get("created_at")
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
