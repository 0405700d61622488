"""`reconciler drift`: what changed in live state since the apply, and who changed it.

The activity log says who changed an object (service.md, 10).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec import field
from msgspec.structs import replace

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    format_option,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.process import write_calls, write_note, write_result
from reconciler.commands.screen import (
    print_warnings,
    render_options,
    run_shown,
    show_report,
    style_of,
)
from reconciler.commands.workspace import Reported, Workspace
from reconciler.diagnostics import Mark
from reconciler.errors import BadUsage, ExitCode, ServiceError
from reconciler.kinds import behaviour_of, kinds_by_name
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Change, FieldChange, Origin, Plan, PlanSource
from reconciler.model.public import Count, Public, derived
from reconciler.model.settings import POSSIBLE_DUPLICATE, PlanOptions
from reconciler.model.text import listed, named, printable, several
from reconciler.model.values import JSON, MISSING, Address, JSONObject, Path, mapping_of, path_text
from reconciler.planning.compare import comparable
from reconciler.planning.inventory import Inventory
from reconciler.planning.notes import PAUSED_BY_SERVICE
from reconciler.planning.select import Named, Names, check_clear
from reconciler.render import writer_of
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.plan_document import applied_commit
from reconciler.render.plan_fields import FieldLine, plain_lines

if TYPE_CHECKING:
    from reconciler.service.operations import ObjectCalls
    from reconciler.service.transport import Transport

_OPERATION = "activity"
_REFUSED = (None, 402, 403, 404)
"""The status of an answer that has no log: not offered to keys, not paid for, or without scope."""
_NAMES = {"enabled": "paused"}
"""The log calls the field `enabled`, with the values of `paused` (service.md, 15.64)."""
_DRIFT = (Origin.LIVE, Origin.BOTH, Origin.UNKNOWN)
"""Where nothing was recorded as applied, a difference from the files counts, too."""
_MOST_LISTED = 5
_COLUMNS = (
    Column("field", padded=False),
    Column("configured", padded=False),
    Column("live", " -> ", padded=False),
    Column("changed", "  (", ")", padded=False),
)


@command(
    "drift",
    examples=(
        ("drift", "Show what changed in live state, and who changed it"),
        ("drift 'orders-*' --no-attribute", "Look at some resources, without the activity log"),
        ("drift orders --write", "Keep the live values of one resource in the files"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.resources)
@workspace_options
@option(
    "--attribute/--no-attribute",
    default=True,
    help="Say who changed each object; one call to the activity log for each.",
)
@option("--write", is_flag=True, help="Write the live values into the files. Comments stay.")
@option("--diff", "--dry-run", "diff", is_flag=True, help="With --write: print a patch instead.")
@format_option("drift")
@rate_option
def drift_command(
    names: tuple[str, ...],
    *,
    output_format: str,
    attribute: bool,
    write: bool,
    diff: bool,
    **options: Any,
) -> ExitCode:
    """Show what changed in live state since it was applied. Changes nothing in the service.

    Shows all resources, or those that NAME selects: address, id, key, name or glob. What changed in
    the files is not drift. Exits with 2 if there is drift; `apply` sets it back.

    With --write, a value goes into the layer that defines it if no other resource or environment
    has it from there, else into the resource or into the overrides of the environment. Exits with
    0 if nothing differs, 2 if all was written, 3 if a value could not be. Secrets cannot be read,
    so they are never written. Without an inventory, it needs a NAME.
    """
    from reconciler.commands.drift_write import pull, pull_summary
    from reconciler.commands.edits import differences_as_text

    if diff and not write:
        raise BadUsage("--diff requires --write")
    workspace = workspace_of(options)
    how, writer = render_options(workspace.folder), writer_of(output_format, "drift")
    if not write:
        work = partial(drift, names=names, attribute=attribute)
        report = show_report("drift", output_format, work, workspace, how).report
        return ExitCode.FINE if report.empty else ExitCode.CHANGES
    result = run_shown(partial(pull, names=names, write=not diff), workspace)
    pulled = result.report
    print_warnings(result.diagnostics)
    patch = differences_as_text(pulled.changes, style_of(sys.stdout))
    write_result(patch if diff else writer(pulled.drift, how))
    write_note(pull_summary(pulled, "Would write" if diff else "Wrote"))
    write_calls(result.calls)
    if pulled.left_out:
        return ExitCode.PARTLY_APPLIED
    return ExitCode.CHANGES if pulled.placed else ExitCode.FINE


class Attribution(Public, frozen=True):
    """The entry of the activity log that set the live value."""

    by: str | None
    """The person; null for the service and for requests by API key that it does not attribute."""
    at: str
    """ISO 8601."""


class DriftedField(Public, frozen=True):
    """A field whose live value is not the declared one. An absent value is null."""

    internal = frozenset({"change"})

    change: FieldChange
    attribution: Attribution | None = field(default=None, name="changed")
    """Null if unknown."""

    @property
    def path(self) -> Path:
        """The path, with the names that the files use."""
        return self.change.written or self.change.path

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)

    @derived
    def configured(self) -> JSON:
        """The configured value."""
        return _null(self.change.after)

    @derived
    def live(self) -> JSON:
        """The live value."""
        return _null(self.change.before)

    @derived
    def conflict(self) -> bool:
        """The configuration changed too."""
        return self.change.origin is Origin.BOTH


class DriftedObject(Public, frozen=True):
    """A resource whose live object drifted."""

    address: Address
    name: str
    live_id: str
    fields: tuple[DriftedField, ...]
    parent_name: str | None = None
    at: Mark | None = None
    """The resource in the files."""
    paused_by_service: bool = False
    """The service paused it after failures."""


class Drift(Public, frozen=True):
    """What differs in live state since the apply."""

    schema = "drift"
    version = 1

    source: PlanSource
    """What the plan was computed from."""
    objects: tuple[DriftedObject, ...]
    compared: Count
    deleted: tuple[Address, ...] = ()
    """Applied resources without a live object."""
    unmanaged: Count = 0
    remarks: tuple[str, ...] = ()
    renamed: Mapping[Address, str] = {}
    """Applied resources whose object was probably renamed in the service, with its name."""

    @property
    def empty(self) -> bool:
        """Whether nothing drifted. Unmanaged objects are no drift."""
        return not (self.objects or self.deleted or self.renamed)


def _null(value: JSON) -> JSON:
    return None if value is MISSING else value


def drift_document(drift: Drift, _: RenderOptions) -> Document:
    """Return what drifted, each field with its configured and its live value."""
    rows = tuple(row for item in drift.objects for row in _rows(item))
    after = [*_rest(drift), *(f"note: {text}" for text in drift.remarks)]
    if drift.objects:
        after.append(
            "hint: reconciler drift --write keeps live values in the files; apply sets them back"
        )
    applied = "nothing recorded as applied"
    if drift.source.applied:
        applied = f"applied {applied_commit(drift.source)}"
    return Document(
        (Cell(f"Drift of {drift.source.environment}"),),
        (Cell(f"Environment {drift.source.environment} · {applied}"),),
        (Table(_COLUMNS, rows, headed=False, indent=6, noun="field"),),
        _counts(drift),
        tuple(after),
    )


def _rows(item: DriftedObject) -> Iterator[Row]:
    parent = f" in {item.parent_name}" if item.parent_name else ""
    place = f"  {item.at.file}:{item.at.line}" if item.at is not None else ""
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(named(item.name))
    group = Group(name, f"{parent}{place}", "~")
    for drifted in item.fields:
        about = Cell(_about(item, drifted))
        for line in _lines(item, drifted):
            sides = ("…", "…") if line.hunk else (line.before or "-", line.after or "-")
            cells = (Cell(line.name, code=True), *(Cell(side, code=True) for side in sides), about)
            yield Row(cells, group=group, lines=line.hunk)


def _lines(item: DriftedObject, field: DriftedField) -> list[FieldLine]:
    """Return the lines of a field, with the configured value before the live one."""
    change = replace(field.change, before=field.change.after, after=field.change.before)
    return list(plain_lines(Change(item.address, Action.UPDATE, item.name, fields=(change,))))


def _about(item: DriftedObject, field: DriftedField) -> str:
    """Return what is known about a field: who changed it and when, and conflicts."""
    parts = ["conflict: the configuration changed too"] if field.conflict else []
    if field.change.origin is Origin.UNKNOWN:
        parts.append("differs from the files")
    if item.paused_by_service and field.change.path == ("paused",):
        parts.append("paused by the service after failures; fix the cause before it is unpaused")
    if (known := field.attribution) is not None:
        by = f"by {known.by}" if known.by is not None else "by the service or an API key"
        parts.append(printable(f"{by}, {known.at}"))
    return "; ".join(parts)


def _counts(drift: Drift) -> str:
    if drift.empty:
        count = several(drift.compared, "resource")
        return f"No drift. Live state is as in the files or as applied ({count})."
    if not drift.objects:
        return ""
    fields = several(sum(len(item.fields) for item in drift.objects), "field")
    of = several(drift.compared, "resource")
    return f"Drift in {len(drift.objects)} of {of} ({fields})."


def _rest(drift: Drift) -> Iterator[str]:
    deleted = [str(address) for address in drift.deleted]
    renamed = [f"{address} to {named(name)}" for address, name in drift.renamed.items()]
    happened = (deleted, "deleted since the apply"), (renamed, "probably renamed")
    for texts, what in happened:
        if texts:
            names = listed(texts, _MOST_LISTED)
            yield f"{several(len(texts), 'live object')} {what}: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"


async def drift(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    options: PlanOptions | None = None,
    attribute: bool = True,
) -> Reported[Drift]:
    """Return what changed in live state since the apply, of all resources without `names`.

    `attribute`: read the activity log of what drifted, one call an object.

    Raises:
        InvalidConfiguration, ServiceError.
        GitUnavailable: the inventory cannot be read.

    """
    from reconciler.commands.session import (
        connected,
        inventory_of,
        open_session,
        planned,
        warnings_of,
    )

    session, options = open_session(workspace), options or PlanOptions()
    async with connected(session) as transport:
        inventory = inventory_of(session, options)
        plan, live = await planned(session, transport, options, inventory)
        result = drift_of(plan, live, inventory, names)
        if attribute:
            result = await attributed(result, live, transport)
        return workspace.masked(
            Reported(result, warnings_of(session.loaded, plan), transport.calls)
        )


def drift_of(
    plan: Plan, live: Live, inventory: Inventory | None, names: Sequence[str] = ()
) -> Drift:
    """Return the drift that a plan would set back, of all resources without names.

    Raises BadUsage for a text that names nothing.
    """
    everything = {change.address: change for change in plan.changes}
    chosen = frozenset(everything)
    if names:
        check_clear(names, plan.refusals)
        known = (
            Named(address, (change.live_id,) if change.live_id else (), (change.name,))
            for address, change in everything.items()
        )
        chosen = Names(known).addresses(names)
    # The fields of a deletion are not compared with anything.
    compared = [
        change
        for change in sorted(plan.changes, key=lambda item: (item.address.kind, item.address.key))
        if change.action is not Action.DELETE and change.address in chosen
    ]
    by_address: dict[Address, list[Change]] = {}
    for change in compared:
        by_address.setdefault(change.address, []).append(change)
    # What was applied and the plan creates again.
    applied = (inventory or Inventory()).counted(live, kinds_by_name()).entries
    created = {change.address for change in compared if change.action is Action.CREATE}
    deleted = created & applied.keys()
    doubled = [item for item in plan.refusals if item.rule == POSSIBLE_DUPLICATE]
    explained = {address for item in doubled for address in item.addresses}
    return Drift(
        source=plan.source,
        objects=tuple(filter(None, map(_object, by_address.values()))),
        compared=len(by_address),
        deleted=tuple(sorted(deleted - explained)),
        renamed={
            address: item.objects[0].name
            for item in doubled
            if (address := item.addresses[0]) in chosen or not names
            if plan.source.applied is None or address in deleted
        },
        unmanaged=len(plan.unmanaged),
        remarks=(
            *(refusal.message for refusal in plan.refusals if refusal in plan.unclear.values()),
            *(note.message for note in plan.notes if note.code == PAUSED_BY_SERVICE),
        ),
    )


def _object(changes: list[Change]) -> DriftedObject | None:
    fields = tuple(
        DriftedField(item)
        for change in changes
        for item in change.fields
        if item.origin in _DRIFT and not item.secret
    )
    first = changes[0]
    if not fields or first.live_id is None:
        return None
    return DriftedObject(
        address=first.address,
        name=first.name,
        live_id=first.live_id,
        fields=fields,
        parent_name=first.parent_name,
        at=next((change.at for change in changes if change.at is not None), None),
        paused_by_service=any(
            item.rule == PAUSED_BY_SERVICE for change in changes for item in change.consequences
        ),
    )


async def attributed(drift: Drift, live: Live, transport: Transport) -> Drift:
    """Return drift with who changed it and when, where the activity log says so.

    A server that refuses its log is asked once. Raises ServiceError for other errors.
    """
    from reconciler.service.operations import NotOffered, ObjectCalls

    objects = list[DriftedObject]()
    try:
        for item in drift.objects:
            kind = kinds_by_name()[item.address.kind]
            body = live.by_identity[kind.name, item.live_id]
            calls = ObjectCalls(transport, kind, drift.source.organization, body, live.dialect)
            logs = (it.name == _OPERATION and it.scope for it in behaviour_of(kind).operations)
            objects.append(await _attributed(item, calls) if any(logs) else item)
    except (NotOffered, ServiceError) as error:
        if getattr(error, "status", None) not in _REFUSED:
            raise
        return replace(drift, remarks=(*drift.remarks, f"the author is unknown: {error.message}"))
    return replace(drift, objects=tuple(objects))


async def _attributed(item: DriftedObject, calls: ObjectCalls) -> DriftedObject:
    """Return an object with the newest entries of its log that set the live values.

    What the log does not show, such as a change of a destination, stays unknown.
    """
    latest: dict[str, tuple[JSON, Attribution]] = {}
    entries = await calls.send(_OPERATION, query={"item_id": item.live_id, "page_size": "100"})
    for entry in map(mapping_of, mapping_of(entries).get("results") or ()):
        by = Attribution(_person(entry), str(entry.get("created_at")))
        for change in map(mapping_of, mapping_of(entry.get("detail")).get("changes") or ()):
            name = str(change.get("field"))
            latest.setdefault(_NAMES.get(name, name), (change.get("after"), by))
    fields = list(item.fields)
    for position, drifted in enumerate(fields):
        name = path_text(drifted.change.path)
        field, (value, author) = calls.kind.field_named(name), latest.get(name, (None, None))
        if field and comparable(field, value) == comparable(field, drifted.change.before):
            fields[position] = replace(drifted, attribution=author)
    return replace(item, fields=tuple(fields))


def _person(entry: JSONObject) -> str | None:
    """Return the name and address of the user of an entry, None for the service.

    Before July 2026, writes by API key are attributed to the service.
    """
    user = mapping_of(entry.get("user")) if entry.get("is_system") is not True else {}
    email = user.get("email") and f"<{user['email']}>"
    words = (user.get("first_name"), user.get("last_name"), email)
    return " ".join(map(str, filter(None, words))) or None
