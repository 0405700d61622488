"""The use case `drift`: what changed in live state since the apply, who did it, and into the files.

The activity log says who changed an object (service.md, 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.commands.edits import file_changes
from reconciler.commands.import_.drafts import doubtful_paths
from reconciler.commands.runtime import Reported, Workspace
from reconciler.commands.session import Session
from reconciler.diagnostics import InvalidConfiguration, Mark
from reconciler.editing.editing import reason_against
from reconciler.editing.placing import Place, Placing, edited_texts
from reconciler.editing.writing import write_files
from reconciler.editing.yaml_text import reads_back
from reconciler.errors import BadUsage, ServiceError
from reconciler.kinds import behaviour_of, kinds_by_name
from reconciler.model.address import Address
from reconciler.model.files import FileChange
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, FieldChange, Origin, Plan, PlanSource
from reconciler.model.policy import POSSIBLE_DUPLICATE, PlanOptions
from reconciler.model.public import Count, Public, derived
from reconciler.model.redaction import Mask
from reconciler.model.text import listed, printable, quoted, several
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    map_leaves,
    mapping_of,
    path_text,
    put_at,
    value_at,
)
from reconciler.planning.compare import comparable, field_leaves, written_value
from reconciler.planning.integrations import named, with_value
from reconciler.planning.inventory import Inventory
from reconciler.planning.names import Named, Names, check_clear
from reconciler.planning.notes import PAUSED_BY_SERVICE
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.plan_document import applied_commit
from reconciler.render.plan_fields import FieldLine, plain_lines
from reconciler.service.calls import NotOffered, ObjectCalls
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
    session, options = Session.open(workspace), options or PlanOptions()
    async with session.connected() as transport:
        inventory = session.inventory(options)
        plan, live = await session.planned(transport, options, inventory)
        result = drift_of(plan, live, inventory, names)
        if attribute:
            result = await attributed(result, live, transport)
        return workspace.masked(Reported(result, session.warnings(plan), transport.calls))


def drift_of(
    plan: Plan, live: Live, inventory: Inventory | None, names: Sequence[str] = ()
) -> Drift:
    """Return the drift that a plan would set back, of all resources without names.

    Raises BadUsage for a text that names nothing.
    """
    chosen = _chosen(plan, names)
    by_address: dict[Address, list[Change]] = {}
    for change in sorted(plan.changes, key=lambda item: (item.address.kind, item.address.key)):
        # The fields of a deletion are not compared with anything.
        if change.action is not Action.DELETE and change.address in chosen:
            by_address.setdefault(change.address, []).append(change)
    # What was applied and the plan creates again.
    applied = (inventory or Inventory()).counted(live, kinds_by_name()).entries
    deleted = {
        address
        for address, changes in by_address.items()
        if address in applied and any(change.action is Action.CREATE for change in changes)
    }
    doubled = [item for item in plan.refusals if item.rule == POSSIBLE_DUPLICATE]
    renamed = {
        item.addresses[0]: item.objects[0].name
        for item in doubled
        if not names or item.addresses[0] in chosen
    }
    explained = {address for item in doubled for address in item.addresses}
    objects = map(_object, by_address.values())
    return Drift(
        source=plan.source,
        objects=tuple(item for item in objects if item is not None),
        compared=len(by_address),
        deleted=tuple(sorted(deleted - explained)),
        renamed={
            address: name
            for address, name in renamed.items()
            if plan.source.applied is None or address in deleted
        },
        unmanaged=len(plan.unmanaged),
        remarks=(
            *(refusal.message for refusal in plan.refusals if refusal in plan.unclear.values()),
            *(note.message for note in plan.notes if note.code == PAUSED_BY_SERVICE),
        ),
    )


def _chosen(plan: Plan, names: Sequence[str]) -> frozenset[Address]:
    ids = {change.address: change for change in plan.changes}
    if not names:
        return frozenset(ids)
    check_clear(names, plan.refusals)
    known = (
        Named(address, (change.live_id,) if change.live_id else (), (change.name,))
        for address, change in ids.items()
    )
    return Names(known).addresses(names)


def _object(changes: list[Change]) -> DriftedObject | None:
    fields = [
        DriftedField(item)
        for change in changes
        for item in change.fields
        if item.origin in _DRIFT and not item.secret
    ]
    first = changes[0]
    if not fields or first.live_id is None:
        return None
    rules = {item.rule for change in changes for item in change.consequences}
    return DriftedObject(
        address=first.address,
        name=first.name,
        live_id=first.live_id,
        fields=tuple(fields),
        parent_name=first.parent_name,
        at=next((change.at for change in changes if change.at is not None), None),
        paused_by_service=PAUSED_BY_SERVICE in rules,
    )


async def attributed(drift: Drift, live: Live, transport: Transport) -> Drift:
    """Return drift with who changed it and when, where the activity log says so.

    A server that refuses its log is asked once. Raises ServiceError for other errors.
    """
    objects = list(drift.objects)
    try:
        for position, item in enumerate(objects):
            kind = kinds_by_name()[item.address.kind]
            offered = {it.name for it in behaviour_of(kind).operations if it.scope}
            if _OPERATION in offered:
                body = live.by_identity[kind.name, item.live_id]
                calls = ObjectCalls(transport, kind, drift.source.organization, body, live.dialect)
                objects[position] = await _attributed(item, calls)
    except (NotOffered, ServiceError) as error:
        if getattr(error, "status", None) not in _REFUSED:
            raise
        remark = f"the author is unknown: {error.message}"
        return replace(drift, remarks=(*drift.remarks, remark))
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
        known = calls.kind.field_named(name := path_text(drifted.change.path))
        if known is None or name not in latest:
            continue
        value, by = latest[name]
        if comparable(known, value) == comparable(known, drifted.change.before):
            fields[position] = replace(drifted, attribution=by)
    return replace(item, fields=tuple(fields))


def _person(entry: JSONObject) -> str | None:
    """Return the name and address of the user of an entry, None for the service.

    Before July 2026, writes by API key are attributed to the service.
    """
    user = mapping_of(entry.get("user")) if entry.get("is_system") is not True else {}
    email = user.get("email") and f"<{user['email']}>"
    words = (user.get("first_name"), user.get("last_name"), email)
    return " ".join(str(word) for word in words if word) or None


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
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(f'"{item.name}"')
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
    renamed = [f"{address} to {quoted(name)}" for address, name in drift.renamed.items()]
    happened = (deleted, "deleted since the apply"), (renamed, "probably renamed")
    for texts, what in happened:
        if texts:
            names = listed(texts, _MOST_LISTED)
            yield f"{several(len(texts), 'live object')} {what}: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"


_CONFLICT = "conflict: the configuration changed too; edit the file, or apply sets it back"
_SECRET = "it contains a known secret"  # noqa: S105 - a message
_UNWRITABLE = "strict YAML cannot express it"
_NO_EFFECT = "the files cannot express the live value"
_DELETED = "its live object was deleted; remove it from the files, or apply creates it again"
_NAME = "set `name` or `lifecycle.renamed_from`"


class Placed(Struct, frozen=True):
    """A live value that is written.

    `layer` is `resource`, `override ENVIRONMENT`, `defaults of FILE` or `defaults`, `at` the place
    that is edited.
    """

    address: Address
    path: Path
    layer: str
    at: Mark


class LeftOut(Struct, frozen=True):
    """What drifted and is not written: a field, or a resource if the path is empty."""

    address: Address
    path: Path
    reason: str


class Pulled(Struct, frozen=True):
    """What `drift --write` writes, and the drift of before."""

    drift: Drift
    placed: tuple[Placed, ...]
    left_out: tuple[LeftOut, ...]
    changes: Mapping[str, FileChange]


class _Value(Struct, frozen=True):
    """A drifted field with what its live value changes in the files, or why it changes nothing."""

    address: Address
    field: DriftedField
    places: tuple[Place, ...]
    reason: str | None

    def placed(self) -> Iterator[Placed]:
        """Yield what is written."""
        for place in self.places if self.reason is None else ():
            at = place.document.mark(place.edit.path)
            yield Placed(self.address, self.field.path, place.layer, at)


async def pull(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    options: PlanOptions | None = None,
    write: bool = True,
) -> Reported[Pulled]:
    """Write the live values that drifted since the apply into the files.

    What a file gets is loaded and planned first: a value that does not make its difference go is
    left out. No other resource and no other environment changes. Without `write`, nothing does.

    Raises:
        InvalidConfiguration: the files have errors.
        ServiceError, GitUnavailable.
        BadUsage: neither names nor an inventory.

    """
    session, options = Session.open(workspace), options or PlanOptions()
    async with session.connected() as transport:
        inventory = session.inventory(options)
        if not names and (inventory is None or inventory.record is None):
            raise BadUsage(
                "without an inventory, it is unknown what changed in live state",
                hint="name the resources whose live values the files should have",
            )
        plan, live = await session.planned(transport, options, inventory)
    drift = drift_of(plan, live, inventory, names)
    values = [
        _value(session, live, item.address, item.live_id, field)
        for item in drift.objects
        for field in item.fields
    ]
    try:
        differing = _differing(session, live, inventory, options, values)
    except InvalidConfiguration:
        values = _without_errors(session, values)
        differing = _differing(session, live, inventory, options, values)
    values = [
        replace(value, reason=value.reason or _NO_EFFECT)
        if (value.address, value.field.change.path) in differing
        else value
        for value in values
    ]
    texts = _texts(session, values)
    if write:
        write_files(session.workspace.folder, texts)
    pulled = Pulled(
        drift=drift,
        placed=tuple(placed for value in values for placed in value.placed()),
        left_out=tuple(_left_out(drift, values)),
        changes=file_changes((place.document for item in values for place in item.places), texts),
    )
    return workspace.masked(Reported(pulled, session.warnings(plan), transport.calls))


def _left_out(drift: Drift, values: Iterable[_Value]) -> Iterator[LeftOut]:
    for value in values:
        if value.reason is not None:
            yield LeftOut(value.address, value.field.path, value.reason)
    for address in drift.deleted:
        yield LeftOut(address, (), _DELETED)
    for address, name in drift.renamed.items():
        reason = f"its live object was probably renamed to {quoted(name)}; {_NAME}"
        yield LeftOut(address, (), reason)


def _value(
    session: Session, live: Live, address: Address, live_id: str, field: DriftedField
) -> _Value:
    """Return what the live value of a field changes in the files."""
    kind, loaded = kinds_by_name()[address.kind], session.loaded
    item = live.by_identity[address.kind, live_id]
    path, value = field.change.path, _live_value(kind, item, field.change)
    table = live.integrations.get(item.parent_id or "")
    if table is not None and value is not None:
        # Names of integrations where the resource has some.
        like = loaded.desired.resources[address].spec
        value = value_at(named(kind, with_value(item.body, path, value), table, like=like), path)
    reason = _reason_against(kind, item, field, value, session.mask)
    places = tuple(Placing(loaded, address).places_of(field.path, value, field.change.after))
    for place in places:
        reason = reason or reason_against(place.document, place.edit)
    return _Value(address, field, places, reason)


def _reason_against(
    kind: Kind, live: LiveObject, field: DriftedField, value: JSON, mask: Mask
) -> str | None:
    """Return why a live value is not written, None if it can be."""
    if field.conflict:
        return _CONFLICT
    if map_leaves(value, lambda leaf: mask(leaf) if isinstance(leaf, str) else leaf) != value:
        return _SECRET
    spec: dict[str, JSON] = {}
    for holder, variant in kind.variants:
        tag = (holder.name, variant.tag)
        put_at(spec, tag, value_at(live.body, tag))
    put_at(spec, field.change.path, value)
    for _, reason in doubtful_paths(kind, spec):
        return reason
    return None if reads_back({str(field.path[-1]): value}) else _UNWRITABLE


def _texts(session: Session, values: Iterable[_Value]) -> dict[str, str]:
    """Return the new texts of the files."""
    places = (place for value in values if value.reason is None for place in value.places)
    return edited_texts(
        session.workspace.folder, ((place.document, place.edit) for place in places)
    )


def _without_errors(session: Session, values: Sequence[_Value]) -> list[_Value]:
    """Return values, those with a reason that make the files invalid, one after the other."""
    kept: list[_Value] = []
    for value in values:
        try:
            Session.open(session.workspace, drafts=_texts(session, [*kept, value]))
            kept.append(value)
        except InvalidConfiguration as error:
            kept.append(replace(value, reason=error.diagnostics[0].message))
    return kept


def _differing(
    session: Session,
    live: Live,
    inventory: Inventory | None,
    options: PlanOptions,
    values: Iterable[_Value],
) -> set[tuple[Address, Path]]:
    """Return the fields that a plan of the edited files would change."""
    drafted = Session.open(session.workspace, drafts=_texts(session, values))
    plan = drafted.plan(live, options, inventory)
    return {
        *((change.address, field.path) for change in plan.effective for field in change.fields),
        *((item.address, item.field.path) for item in values if item.address in plan.unclear),
    }


def _live_value(kind: Kind, live: LiveObject, change: FieldChange) -> JSON:
    """Return a live value as files have it; of a merged object, the keys that differ."""
    if isinstance(change.before, dict):
        return change.before
    for leaf in field_leaves(kind.fields, live.body, live=True):
        if leaf.path == change.path and leaf.value is not None:
            # Old servers return numbers and booleans as text. The order of a list stays.
            is_text = isinstance(leaf.value, str)
            return written_value(leaf.field, leaf.value) if is_text else leaf.value
    return None if change.before is MISSING else change.before


def pull_summary(pulled: Pulled, verb: str) -> str:
    """Return what is written where, what was left out, and how many values are written."""
    lines = [
        printable(f"{item.at}: set {path_text(item.path)} of {item.address} ({item.layer})")
        for item in pulled.placed
    ]
    for item in pulled.left_out:
        what = f"{item.address} {path_text(item.path)}".strip()
        lines.append(printable(f"left out: {what}: {item.reason}"))
    if pulled.placed:
        values, files = several(len(pulled.placed), "value"), several(len(pulled.changes), "file")
        lines.append(f"{verb} {values} to {files}")
    return "".join(f"{line}\n" for line in lines or ["No drift."])
