"""The live objects that commands for operations show and act on, by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from reconciler.commands.session import Session, connected, matched, open_session
from reconciler.commands.workspace import Workspace
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.event import Noted
from reconciler.model.kind import Kind
from reconciler.model.live import Identity, Live, LiveObject
from reconciler.model.resource import Resource
from reconciler.model.values import Address
from reconciler.planning.match import Matching
from reconciler.planning.select import Named, Names, check_clear
from reconciler.service.live import read_live
from reconciler.service.operations import ObjectCalls
from reconciler.service.transport import Transport

_OPTION = "--project"


class Target(Struct, frozen=True):
    """A live object, and its resource if the configuration has one.

    `address` is that of the resource, or `KIND.id:ID`. `parent_name` is the live name of its
    parent.
    """

    address: Address
    kind: Kind
    live: LiveObject
    resource: Resource | None = None
    parent_name: str | None = None

    @property
    def declares_pause(self) -> bool:
        """Whether the configuration pauses it."""
        return self.resource is not None and self.resource.spec.get("paused") is True


class Targets(Struct, frozen=True):
    """The live objects of a kind, and the resources without one, by address."""

    session: Session
    transport: Transport
    live: Live
    objects: tuple[Target, ...]
    missing: tuple[Address, ...]
    parents: tuple[Named, ...]
    matching: Matching

    @property
    def environment(self) -> str:
        """Name of the environment."""
        return self.session.loaded.desired.environment

    @property
    def where(self) -> tuple[str, str, str]:
        """The environment, the address of the service, and the id of the organization."""
        loaded = self.session.loaded
        return self.environment, loaded.reachable().base_url, loaded.desired.organization

    def now(self) -> datetime:
        """Return the time of the service, and report a clock of this machine that differs."""
        runtime = self.session.runtime
        local = runtime.now()
        now = self.transport.now(local)
        if now != local:
            from reconciler.model.times import rough_duration

            words = f"{rough_duration(abs(local - now))} {'ahead' if local > now else 'behind'}"
            message = f"the clock of this machine is {words}; the time of the service is used"
            runtime.listen(Noted(message, important=True))
        return now

    def page(self, target: Target, query: str = "") -> str | None:
        """Return the page of an object on the service, None if it is unknown."""
        template, live = target.kind.page, target.live
        if not template or (target.kind.parent is not None and live.parent_id is None):
            return None
        path = template.format(parent=quote(live.parent_id or ""), id=quote(live.id))
        return f"{self.session.loaded.reachable().base_url}{path}{query}"

    def about(self, target: Target, tab: str) -> dict[str, Any]:
        """Return the fields of `Subject`. `tab` is that of the page of the object."""
        return {
            "environment": self.environment,
            "address": target.address,
            "name": target.live.name,
            "parent_name": target.parent_name,
            "page": self.page(target, f"?tab={tab}"),
        }

    def named(self, texts: Iterable[str]) -> tuple[Target, ...]:
        """Return the objects that texts name, all without texts.

        A resource without an object does not hide others: `Runtime.left_out` gets its error.

        Raises BadUsage for a text that names nothing, ReconcilerError if no resource has an object.
        """
        texts, names = tuple(texts), self._names()
        known, absent = [], []
        for text in names.split(texts):
            try:
                self._check_exists(text, names)
                known.append(text)
            except ReconcilerError as error:
                absent.append(error)
        if absent and not known:
            raise absent[0]
        chosen = names.addresses(known)
        for problem in absent:
            self._leave_out(problem)
        return tuple(item for item in self.objects if not texts or item.address in chosen)

    def chosen(self, texts: Iterable[str], parents: Sequence[str]) -> tuple[Target, ...]:
        """Return the objects that texts name and that are below the parents that texts name.

        All without texts. Raises what `named` raises.
        """
        named = self.named(texts)
        if not parents:
            return named
        names = Names(self.parents)
        ids = names.ids_of(names.addresses(parents, _OPTION))
        return tuple(target for target in named if target.live.parent_id in ids)

    def one(self, text: str) -> Target:
        """Return the only object that a text names.

        Raises BadUsage for none and for several, ReconcilerError for a resource without an object.
        """
        names = self._names()
        self._check_exists(text, names)
        named = names.one(text)
        return next(item for item in self.objects if item.address == named.address)

    def calls(self, target: Target) -> ObjectCalls:
        """Return the operations of an object."""
        resource, live = target.resource, self.live
        return ObjectCalls(
            self.transport,
            target.kind,
            self.session.loaded.desired.organization,
            target.live,
            live.dialect,
            live.serves_organization and resource is not None and resource.parent is None,
            self.environment,
        )

    def _leave_out(self, error: ReconcilerError) -> None:
        """Note that a resource has no object, once, and keep the error for the end of the run."""
        left_out, message = self.session.runtime.left_out, self.session.mask(error.message)
        if (self.environment, message) not in left_out:
            left_out[self.environment, message] = error.reworded(message, hint=error.hint)
            self.session.note(message, important=True)

    def _check_exists(self, text: str, names: Names) -> None:
        """Raise ReconcilerError if a text names a resource without an object, or with several."""
        if not names.matching(text):
            check_clear([text], self.matching.unclear)
            for address in self.missing:
                if text in (str(address), address.key):
                    raise ReconcilerError(f"{address} does not exist yet", hint="apply it first")

    def _names(self) -> Names:
        return Names(Named.of_live(item.live, item.address) for item in self.objects)


def kind_with(operation: str) -> Kind:
    """Return the kind that has an operation."""
    return next(
        kind
        for kind in all_kinds()
        if any(item.name == operation for item in behaviour_of(kind).operations)
    )


@asynccontextmanager
async def opened(workspace: Workspace, operation: str) -> AsyncIterator[Targets]:
    """Load a workspace, connect, and yield every object of the kind that has an operation.

    Raises InvalidConfiguration, ServiceError.
    """
    session = open_session(workspace)
    async with connected(session) as transport:
        yield await read_targets(session, transport, operation)


async def read_targets(session: Session, transport: Transport, operation: str) -> Targets:
    """Read live state and return every object of the kind that has an operation.

    Objects without a resource are among them.

    Raises ServiceError.
    """
    desired = session.loaded.desired
    live = await read_live(transport, desired, kinds=all_kinds())
    matching, live = await matched(session, transport, live)
    kind = kind_with(operation)
    parents = {item.id: item.name for item in live.of(kind.parent)} if kind.parent else {}
    objects = []
    for item in live.of(kind.name):
        owner = matching.owners.get(item.identity)
        resource = matching.matches[owner].resource if owner is not None else None
        parent = parents.get(item.parent_id or "")
        objects.append(Target(owner or item.address, kind, item, resource, parent))
    missing = tuple(
        address
        for address, item in sorted(matching.matches.items())
        if item.live is None and address.kind == kind.name
    )
    objects.sort(key=lambda item: (item.address.kind, item.address.key))
    above = tuple(_parents(live, kind, matching.owners)) if kind.parent else ()
    return Targets(session, transport, live, tuple(objects), missing, above, matching)


def _parents(live: Live, kind: Kind, owners: Mapping[Identity, Address]) -> Iterator[Named]:
    parent, known = kind.parent or "", set[str]()
    for item in live.of(parent):
        known.add(item.id)
        yield Named.of_live(item, owners.get(item.identity))
    # The key may not list them.
    ids = {item.parent_id for item in live.of(kind.name) if item.parent_id is not None}
    for parent_id in ids - known:
        yield Named(Address.of_unmanaged(parent, parent_id), (parent_id,))
