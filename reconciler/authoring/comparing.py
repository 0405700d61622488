"""The use case `compare`: two environments of the files, or their live states, and the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.authoring.environments import (
    EnvironmentComparison,
    EnvironmentSide,
    FieldDifference,
    FieldSide,
    Intent,
    LiveSide,
    OnlyIn,
    ResourceDifference,
    compare_live,
    field_differences,
    needed_in_full,
)
from reconciler.client import Transport, together
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.diagnostics import Mark
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.address import Address
from reconciler.model.live import Live
from reconciler.model.naming import Named, Names
from reconciler.model.resource import Resource
from reconciler.model.text import listed, quoted, several, shortened
from reconciler.model.values import JSON, MISSING, Path, SecretRef, map_leaves, path_text, value_at
from reconciler.planning.integrations import with_integrations
from reconciler.planning.matcher import Matching, match
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import Cell, Column, Document, Group, Row, Table, unpadded
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.resolved import yaml_line
from reconciler.workspace.loading import Loaded
from reconciler.workspace.origins import LITERAL_SECRET

_LONGEST = 80
_MOST_NAMES = 5


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
    def open(cls, options: WorkspaceOptions, names: tuple[str, str], runtime: Runtime) -> Pair:
        """Load the workspace twice. Raises BadUsage unless it has both environments."""
        if names[0] == names[1]:
            raise BadUsage(f"cannot compare environment '{names[0]}' with itself")
        sharing = runtime.sharing()
        sessions = [Session.open(replace(options, environment=name), sharing) for name in names]
        if not sessions[0].loaded.environments:
            raise BadUsage("this workspace has no environments", hint="add them to reconciler.yaml")
        return cls(*sessions)

    def chosen(self, texts: Sequence[str]) -> frozenset[Address]:
        """Return the resources that texts name, all without texts. Raises BadUsage."""
        first, second = self.first.loaded.desired, self.second.loaded.desired
        everything = {**second.resources, **first.resources}
        if not texts:
            return frozenset(everything)
        return Names(map(Named.of_resource, everything.values())).addresses(texts)

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
    intents = {
        resource.address: {field.path: field.intent for field in resource.intended}
        for resource in compared.resources
    }
    comparison = compare_live(
        first,
        second,
        intents=intents,
        chosen=pair.chosen(request.names) if request.names else None,
    )
    return Reported(comparison, diagnostics, calls)


async def _live_side(session: Session, transport: Transport) -> LiveSide:
    """Read the live state of an environment, with the objects of its resources in full."""
    desired = session.loaded.desired

    def matched(live: Live) -> Matching:
        matching = match(desired, live, policy=session.loaded.policy, kinds=all_kinds())
        return with_integrations(matching, desired.resources)

    matching, _ = await session.settled(
        transport, await session.read(transport), matched, needs=needed_in_full
    )
    return LiveSide(desired.environment, matching)


def compare_files(pair: Pair, names: Sequence[str] = ()) -> EnvironmentComparison:
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
    kind = kinds_by_name()[address.kind]
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


def compared_document(comparison: EnvironmentComparison, options: RenderOptions) -> Document:
    """Return the differences, then the intended ones (grouped unless verbose), and the counts."""
    first, second = comparison.first, comparison.second
    where = "live state" if comparison.live else "configuration"
    rows = (row for item in comparison.differing for row in _rows(item, item.unintended))
    differing = Table(_columns(comparison), tuple(rows), headed=False, indent=6)
    return Document(
        (Cell(f"{first} and {second}"),),
        (Cell(f"Environments {first} and {second} · {where}"),),
        (
            differing,
            _only_table(first, comparison.only_first),
            _only_table(second, comparison.only_second),
            _intended(comparison, options),
        ),
        _summary(comparison),
    )


def _columns(comparison: EnvironmentComparison) -> tuple[Column, ...]:
    return (
        Column("field"),
        Column(comparison.first, after=f" in {comparison.first},", padded=False),
        Column(comparison.second, " ", f" in {comparison.second}", padded=False),
        Column("why or where", padded=False),
    )


def _rows(item: ResourceDifference, fields: Sequence[FieldDifference]) -> Iterator[Row]:
    name = Cell(str(item.address), code=True), Cell(quoted(item.name))
    for field in fields:
        sides = (_cell(side) for side in (field.first, field.second))
        cells = Cell(path_text(field.path), code=True), *sides, Cell(_why(field), Colour.DIM)
        yield Row(cells, group=Group(name, sign="~"))


def _why(field: FieldDifference) -> str:
    """Return why a difference is intended, or a place that sets the field."""
    if field.intent is not None:
        return f"({_reason(field)})"
    return _at((field.second if field.first.value is MISSING else field.first).at)


def _at(mark: Mark | None) -> str:
    return place_as_text(mark) if mark is not None else ""


def _reason(field: FieldDifference) -> str:
    written = {side.written for side in (field.first, field.second)}
    if field.intent is Intent.REFERENCE and written:
        return ", ".join(sorted(shortened(text, _LONGEST) for text in written if text))
    return field.intent.meaning if field.intent is not None else ""


def _only_table(environment: str, items: Sequence[OnlyIn]) -> Table:
    rows = (
        Row(
            (Cell(str(item.address), code=True), Cell(quoted(item.name)), Cell(_at(item.at))),
            "+",
            Colour.YELLOW,
        )
        for item in items
    )
    columns = unpadded({"address": "", "name": " ", "at": "  "})
    return Table(columns, tuple(rows), f"Only in {environment}:", headed=False, indent=2)


def _intended(comparison: EnvironmentComparison, options: RenderOptions) -> Table:
    if options.verbose:
        title, columns = "Intended differences:", _columns(comparison)
        rows = [row for item in comparison.intended for row in _rows(item, item.intended)]
    else:
        title = "Intended differences (values: --verbose):"
        why = Column("why", after=":", padded=False)
        columns = Column("field"), why, *unpadded({"resources": " "})
        rows = [
            Row((Cell(path, code=True), Cell(reason), Cell(listed(keys, _MOST_NAMES))))
            for (path, reason), keys in _groups(comparison).items()
        ]
    return Table(columns, tuple(rows), title, headed=False, indent=6, folded=True)


def _groups(comparison: EnvironmentComparison) -> Mapping[tuple[str, str], list[str]]:
    """Return the keys of resources by field and reason of their intended differences."""
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in comparison.intended:
        for field in item.intended:
            keys[path_text(field.path), _reason(field)].append(item.address.key)
    return keys


def _cell(side: FieldSide) -> Cell:
    if side.value is MISSING:
        return Cell("not set")
    return Cell(shortened(yaml_line(side.value), _LONGEST), code=True)


def _summary(comparison: EnvironmentComparison) -> str:
    fields = sum(len(item.unintended) for item in comparison.differing)
    where = several(len(comparison.differing), "resource")
    counts = [f"{several(fields, 'difference')} in {where}"] if fields else []
    for name, items in (
        (comparison.first, comparison.only_first),
        (comparison.second, comparison.only_second),
    ):
        counts += [f"{several(len(items), 'resource')} only in {name}"] if items else []
    intended = sum(len(item.intended) for item in comparison.intended)
    alike = f"{several(intended, 'intended difference')}, {comparison.equal:,} equal"
    return f"{', '.join(counts) or 'No differences'} ({alike})."
