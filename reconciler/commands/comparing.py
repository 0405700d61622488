"""The use case `compare`: two environments of the files, or their live states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.compared import (
    EnvironmentComparison,
    FieldDifference,
    FieldSide,
    Intent,
    OnlyIn,
    ResourceDifference,
)
from reconciler.model.naming import Named, Names
from reconciler.model.resource import Resource
from reconciler.model.values import JSON, Path, SecretRef, map_leaves, value_at
from reconciler.planning.comparison import EnvironmentSide, field_differences
from reconciler.planning.live_comparison import LiveSide, compare_live, needed_in_full
from reconciler.planning.matcher import match
from reconciler.workspace.loading import Loaded
from reconciler.workspace.origins import LITERAL_SECRET


class CompareRequest(Struct, frozen=True):
    """Which environments to compare: those of the files, or their `live` states.

    `names` are the resources to compare, all if empty.
    """

    workspace: WorkspaceOptions
    first: str
    second: str
    live: bool = False
    names: tuple[str, ...] = ()


class Pair(Struct, frozen=True):
    """A workspace, loaded for two environments."""

    first: Session
    second: Session

    @classmethod
    def open(
        cls,
        options: WorkspaceOptions,
        names: tuple[str, str],
        runtime: Runtime,
        *,
        drafts: Mapping[str, str] | None = None,
    ) -> Pair:
        """Load the workspace twice. Raises BadUsage unless it has both environments."""
        if names[0] == names[1]:
            raise BadUsage(f"cannot compare environment '{names[0]}' with itself")
        sessions = [
            Session.open(replace(options, environment=name), runtime, drafts=drafts)
            for name in names
        ]
        if not sessions[0].loaded.environments:
            raise BadUsage("this workspace has no environments", hint="add them to reconciler.yaml")
        return cls(*sessions)

    def chosen(self, texts: Iterable[str]) -> frozenset[Address]:
        """Return the resources that texts name, all without texts. Raises BadUsage."""
        loaded = (self.first.loaded, self.second.loaded)
        resources = [item.desired.resources for item in loaded]
        everything = {**resources[1], **resources[0]}
        chosen = [*texts]
        if not chosen:
            return frozenset(everything)
        names = Names(map(Named.of_resource, everything.values()))
        return frozenset(item.address for text in chosen for item in names.named(text))

    def sides(self, address: Address) -> tuple[EnvironmentSide, EnvironmentSide]:
        """Return a resource in both environments."""
        return side_of(self.first.loaded, address), side_of(self.second.loaded, address)


def side_of(loaded: Loaded, address: Address) -> EnvironmentSide:
    """Return a resource in an environment, with its overrides as written."""
    overrides = value_at(loaded.declared[address].body, ("overrides", loaded.desired.environment))
    return EnvironmentSide(
        loaded.desired.resources.get(address), overrides if isinstance(overrides, dict) else {}
    )


async def compare(request: CompareRequest, runtime: Runtime) -> Reported[EnvironmentComparison]:
    """Compare two environments.

    Raises:
        InvalidConfiguration, BadUsage, AmbiguousIdentity, ServiceError.

    """
    pair = Pair.open(request.workspace, (request.first, request.second), runtime)
    compared = compare_files(pair, request.names)
    diagnostics = tuple(
        dict.fromkeys((*pair.first.loaded.diagnostics, *pair.second.loaded.diagnostics))
    )
    if not request.live:
        return Reported(compared, diagnostics)
    async with pair.first.connected() as transport, pair.second.connected() as other:
        first, second = await together(
            (_live_side(pair.first, transport), _live_side(pair.second, other))
        )
        calls = transport.calls + other.calls
    comparison = compare_live(
        first,
        second,
        all_kinds(),
        intents=_intents(compared),
        chosen=pair.chosen(request.names) if request.names else None,
    )
    return Reported(comparison, diagnostics, calls)


async def _live_side(session: Session, transport: Transport) -> LiveSide:
    """Read the live state of an environment, with the objects of its resources in full."""
    desired = session.loaded.desired
    matching, live = await session.settled(
        transport,
        await session.read(transport),
        lambda live: match(desired, live, policy=session.loaded.policy, kinds=all_kinds()),
        needs=needed_in_full,
    )
    return LiveSide(desired.environment, live, matching)


def _intents(compared: EnvironmentComparison) -> dict[Address, dict[Path, Intent]]:
    """Return the intended differences of the files by resource and path."""
    return {
        resource.address: {field.path: field.intent for field in resource.intended}
        for resource in compared.resources
    }


def compare_files(pair: Pair, names: Iterable[str] = ()) -> EnvironmentComparison:
    """Compare the resources that names select in the files of two environments."""
    first, second = pair.first.loaded.desired.resources, pair.second.loaded.desired.resources
    chosen = pair.chosen(names)
    both = sorted(chosen & first.keys() & second.keys())
    differing = tuple(filter(None, (_resource(pair, address) for address in both)))
    return EnvironmentComparison(
        first=pair.first.loaded.desired.environment,
        second=pair.second.loaded.desired.environment,
        live=False,
        only_first=_only(first, chosen - second.keys()),
        only_second=_only(second, chosen - first.keys()),
        resources=differing,
        equal=len(both) - len(differing),
    )


def _only(resources: Mapping[Address, Resource], only: Iterable[Address]) -> tuple[OnlyIn, ...]:
    items = (resources[address] for address in sorted(only))
    return tuple(OnlyIn(item.address, item.name, item.mark) for item in items)


def _resource(pair: Pair, address: Address) -> ResourceDifference | None:
    """Return what differs in a resource, None if nothing does."""
    kind = next(kind for kind in all_kinds() if kind.name == address.kind)
    sides = pair.sides(address)
    differences = field_differences(kind, *sides)
    if not differences:
        return None
    fields = tuple(_located(pair, address, difference) for difference in differences)
    resource = pair.first.loaded.desired.resources[address]
    return ResourceDifference(address, resource.name, fields)


def _located(pair: Pair, address: Address, difference: FieldDifference) -> FieldDifference:
    """Return a difference with places and references."""
    sides = [
        _side(session, address, difference.path, side)
        for session, side in ((pair.first, difference.first), (pair.second, difference.second))
    ]
    return replace(difference, first=sides[0], second=sides[1])


def _side(session: Session, address: Address, path: Path, side: FieldSide) -> FieldSide:
    resource = session.loaded.desired.resources[address]
    top = resource.written.get(str(path[0]), path[0])
    written = session.loaded.places[address].written((top, *path[1:]))
    is_reference = isinstance(written, str) and "${" in written
    is_secret = isinstance(side.value, SecretRef)
    value: JSON = map_leaves(side.value, _without_secret)
    return FieldSide(
        value,
        written if is_reference and not is_secret else None,
        resource.near(path),
    )


def _without_secret(leaf: JSON) -> JSON:
    if not isinstance(leaf, SecretRef):
        return leaf
    return LITERAL_SECRET if leaf.is_literal else str(leaf)
