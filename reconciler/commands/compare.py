"""`reconciler compare`: how two environments of the files differ.

A difference is intended if it is an identity or a secret, if both environments override the field,
or if neither does: then it comes from a reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.commands import completion
from reconciler.commands.command import command
from reconciler.commands.options import files_options, folder_option, format_option, workspace_of
from reconciler.commands.process import write_result
from reconciler.commands.screen import print_warnings, render_options
from reconciler.commands.session import load
from reconciler.commands.workspace import Reported, Workspace
from reconciler.diagnostics import Mark
from reconciler.errors import BadUsage
from reconciler.exit_codes import ExitCode
from reconciler.files.layers import OriginContext, fields_with_origin
from reconciler.files.loading import Loaded
from reconciler.kinds import kinds_by_name
from reconciler.model.public import Count, FieldPath, Public, Term, derived
from reconciler.model.resource import PublicField, Resource
from reconciler.model.text import named, printable, several, shortened
from reconciler.model.values import JSON, MISSING, Address, JSONObject, Path, path_text, value_at
from reconciler.planning.select import Named, Names
from reconciler.render import writer_of
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import Cell, Column, Document, Group, Row, Table, unpadded
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.show import yaml_line

_LONGEST = 80
_IDENTITY: tuple[Path, ...] = (("id",), ("name",), ("lifecycle", "renamed_from"))
"""What an object is recognized by, which may differ between environments."""


@command(
    "compare",
    examples=(
        ("compare staging production", "Show what differs in the files, without a network"),
        ("compare staging production lake 'orders-*' --verbose", "Compare some resources"),
    ),
    page="docs/environments.md",
)
@click.argument("first", metavar="A", shell_complete=completion.environments)
@click.argument("second", metavar="B", shell_complete=completion.environments)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.resources)
@folder_option
@files_options
@format_option("compared")
def compare_command(
    first: str, second: str, names: tuple[str, ...], *, output_format: str, **options: Any
) -> ExitCode:
    """Show how environment B differs from A in the files. Changes nothing.

    NAME is an address, an id, a key, a name or a glob of resources. A difference is intended if it
    comes from a reference such as ${var:bucket}, if both environments override the field, or if it
    is a name, an id or a secret. Exits with 2 if there are other differences.
    """
    result = compare(workspace_of(options), first, second, names)
    print_warnings(result.diagnostics)
    write_result(writer_of(output_format, "compared")(result.report, render_options()))
    return ExitCode.FINE if result.report.is_equal else ExitCode.CHANGES


class Intent(Term):
    """Why a difference is intended."""

    IDENTITY = "identity", "identity of the object"
    SECRET = "secret", "secret of the environment"
    OVERRIDES = "overrides", "overrides of both environments"
    REFERENCE = "reference", "reference"


class Difference(Public, frozen=True):
    """A field of a resource that differs. A side is null if the field is not set there."""

    address: Address
    resource_name: str
    """Its name in the first environment."""
    path: FieldPath
    first: PublicField | None
    second: PublicField | None
    intended: Intent | None
    """Why the difference is intended; null if it is not."""

    @derived
    def name(self) -> str:
        """The path as text."""
        return path_text(self.path)


class OnlyIn(Public, frozen=True):
    """A resource that one environment does not have."""

    address: Address
    name: str = field(name="resource_name")
    at: Mark | None = None


class EnvironmentComparison(Public, frozen=True):
    """Two environments of the files: `compare --format json`."""

    schema = "compare"
    version = 2

    first: str
    second: str
    only_first: tuple[OnlyIn, ...]
    only_second: tuple[OnlyIn, ...]
    differences: tuple[Difference, ...]
    equal: Count
    """Resources without a difference."""

    @property
    def unintended(self) -> tuple[Difference, ...]:
        """The differences that `promote` removes."""
        return tuple(item for item in self.differences if item.intended is None)

    @derived
    def is_equal(self) -> bool:
        """Whether there are only intended differences."""
        return not (self.only_first or self.only_second or self.unintended)


class Side(Struct, frozen=True):
    """One environment of the files."""

    loaded: Loaded
    environ: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the environment."""
        return self.loaded.desired.environment

    @property
    def resources(self) -> Mapping[Address, Resource]:
        """Its resources."""
        return self.loaded.desired.resources

    def fields(self, address: Address) -> dict[Path, PublicField]:
        """Return the fields of a resource by path."""
        context = OriginContext(self.loaded.places[address], self.loaded.variables, self.environ)
        fields = fields_with_origin(self.resources[address], kinds_by_name()[address.kind], context)
        return {item.path: item for item in fields if not item.unset}

    def overrides(self, address: Address) -> JSONObject:
        """Return the overrides of a resource as written."""
        written = value_at(self.loaded.declared[address].body, ("overrides", self.name))
        return written if isinstance(written, dict) else {}


Pair = tuple[Side, Side]


def compare(
    workspace: Workspace, first: str, second: str, names: Sequence[str] = ()
) -> Reported[EnvironmentComparison]:
    """Compare two environments of the files in the resources that names select, all without.

    Raises InvalidConfiguration, BadUsage.
    """
    pair = open_pair(workspace, (first, second))
    warnings = dict.fromkeys(item for side in pair for item in side.loaded.diagnostics)
    return workspace.masked(Reported(compared(pair, names), tuple(warnings)))


def open_pair(workspace: Workspace, names: tuple[str, str]) -> Pair:
    """Load a workspace for two environments. Raises BadUsage unless it has both."""
    if names[0] == names[1]:
        raise BadUsage(f"cannot compare environment '{names[0]}' with itself")
    runtime = workspace.runtime.sharing()
    first, second = (
        Side(load(replace(workspace, environment=name, runtime=runtime)), runtime.environ)
        for name in names
    )
    if not first.loaded.environments:
        raise BadUsage("this workspace has no environments", hint="add them to reconciler.yaml")
    return first, second


def compared(pair: Pair, names: Sequence[str] = ()) -> EnvironmentComparison:
    """Return how two environments differ in the resources that names select. Raises BadUsage."""
    first, second = (side.resources for side in pair)
    everything = {**second, **first}
    chosen = frozenset(everything)
    if names:
        chosen = Names(map(Named.of_resource, everything.values())).addresses(names)
    both = sorted(chosen & first.keys() & second.keys())
    differences = tuple(item for address in both for item in _differences(pair, address))
    return EnvironmentComparison(
        first=pair[0].name,
        second=pair[1].name,
        only_first=_only(first, chosen - second.keys()),
        only_second=_only(second, chosen - first.keys()),
        differences=differences,
        equal=len(both) - len({item.address for item in differences}),
    )


def _only(resources: Mapping[Address, Resource], only: Iterable[Address]) -> tuple[OnlyIn, ...]:
    items = (resources[address] for address in sorted(only))
    return tuple(OnlyIn(item.address, item.name, item.mark) for item in items)


def _differences(pair: Pair, address: Address) -> Iterator[Difference]:
    before, after = (side.fields(address) for side in pair)
    for path in {**before, **after}:
        first, second = before.get(path), after.get(path)
        if first is None or second is None or first.value != second.value:
            name = pair[0].resources[address].name
            intent = _intent(pair, address, path, (first, second))
            yield Difference(address, name, path, first, second, intent)


def _intent(
    pair: Pair, address: Address, path: Path, fields: Sequence[PublicField | None]
) -> Intent | None:
    """Return why a difference is intended, None if only one environment overrides the field."""
    if is_identity(pair, address, path):
        return Intent.IDENTITY
    if all(item is not None and item.secret for item in fields):
        return Intent.SECRET
    places = places_in(pair, address, path)
    if None in places:
        return Intent.REFERENCE if places == (None, None) else None
    return Intent.OVERRIDES


def is_identity(pair: Pair, address: Address, path: Path) -> bool:
    """Return whether a field identifies an object: ids of live parents and integrations, too."""
    kind = kinds_by_name()[address.kind]
    resources = [side.resources[address] for side in pair if address in side.resources]
    if path[0] == kind.parent_key:
        return any(item.parent is not None and item.parent.key is None for item in resources)
    if path in kind.integration_paths:
        return any(str(value_at(item.spec, path)).isdigit() for item in resources)
    return path in _IDENTITY


def places_in(pair: Pair, address: Address, path: Path) -> tuple[Path | None, Path | None]:
    """Return where the overrides of each environment set a field, None if they do not.

    It may be a value that contains the field: an override with another type replaces a destination.
    """
    kind = kinds_by_name()[address.kind]
    known = kind.field_named(str(path[0]))
    names = (known.name, *known.aliases) if known is not None else (str(path[0]),)
    tag = known.variant.tag if known is not None and known.variant is not None else ""
    tags = [_tag(side, address, path[0], tag) for side in pair] if tag else [None] * 2
    places: list[Path | None] = []
    for side in pair:
        overrides = side.overrides(address)
        at: Path | None = next(((name,) for name in names if name in overrides), None)
        value = value_at(overrides, at) if at is not None else MISSING
        if tags[0] == tags[1] or (isinstance(value, Mapping) and tag not in value):
            for part in path[1:]:
                if at is None or not isinstance(value, Mapping):
                    break
                at = (*at, part) if part in value else None
                value = value.get(part, MISSING)
        places.append(at)
    return places[0], places[1]


def _tag(side: Side, address: Address, name: str | int, tag: str) -> JSON:
    """Return the tag of a variant, that of the overrides if the environment lacks the resource."""
    resource = side.resources.get(address)
    return value_at(resource.spec if resource else side.overrides(address), (name, tag))


def compared_document(comparison: EnvironmentComparison, options: RenderOptions) -> Document:
    """Return the differences, the intended ones if verbose, and the counts."""
    first, second = comparison.first, comparison.second
    columns = (
        Column("field"),
        Column(first, after=f" in {first},", padded=False),
        Column(second, " ", f" in {second}", padded=False),
        Column("why or where", padded=False),
    )
    shown = comparison.differences if options.verbose else comparison.unintended
    return Document(
        (Cell(f"{first} and {second}"),),
        (Cell(f"Environments {first} and {second} · configuration"),),
        (
            Table(columns, tuple(map(_row, shown)), headed=False, indent=6),
            _only_table(first, comparison.only_first),
            _only_table(second, comparison.only_second),
        ),
        _summary(comparison, options),
    )


def _row(item: Difference) -> Row:
    name = Cell(str(item.address), code=True), Cell(named(item.resource_name))
    sides = item.first, item.second
    shown = item.second if item.first is None else item.first
    origin = shown.origin if shown is not None else None
    where = f"{printable(origin.file)}:{origin.line}" if origin and origin.file else ""
    written = {str(side.written) for side in sides if side is not None and side.written}
    why = item.intended.meaning if item.intended is not None else where
    if item.intended is Intent.REFERENCE and written:
        why = ", ".join(shortened(text, _LONGEST) for text in sorted(written))
    cells = Cell(path_text(item.path), code=True), *map(_cell, sides), Cell(why, Colour.DIM)
    return Row(cells, group=Group(name, sign="~"))


def _cell(side: PublicField | None) -> Cell:
    if side is None:
        return Cell("not set")
    return Cell(shortened(yaml_line(side.value), _LONGEST), code=True)


def _only_table(environment: str, items: Sequence[OnlyIn]) -> Table:
    rows = []
    for item in items:
        place = place_as_text(item.at) if item.at is not None else ""
        cells = Cell(str(item.address), code=True), Cell(named(item.name)), Cell(place)
        rows.append(Row(cells, "+", Colour.YELLOW))
    columns = unpadded({"address": "", "name": " ", "at": "  "})
    return Table(columns, tuple(rows), f"Only in {environment}:", headed=False, indent=2)


def _summary(comparison: EnvironmentComparison, options: RenderOptions) -> str:
    unintended = comparison.unintended
    intended = len(comparison.differences) - len(unintended)
    resources = several(len({item.address for item in unintended}), "resource")
    parts = [f"{several(len(unintended), 'difference')} in {resources}"] if unintended else []
    sides = (comparison.first, comparison.only_first), (comparison.second, comparison.only_second)
    parts += [f"{several(len(only), 'resource')} only in {name}" for name, only in sides if only]
    more = "" if options.verbose else " (--verbose)"
    alike = f"{several(intended, 'intended difference')}{more}, " if intended else ""
    return f"{', '.join(parts) or 'No differences'}; {alike}{comparison.equal:,} equal."
