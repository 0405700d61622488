"""What drifted: found by a plan, attributed by the activity log, and written into the files.

The activity log says who changed an object (service.md, 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.commands.import_drafts import doubtful_paths
from reconciler.commands.session import (
    Session,
    connected,
    inventory_of,
    open_session,
    plan_of,
    planned,
    warnings_of,
)
from reconciler.commands.workspace import Reported, Workspace
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration, Mark
from reconciler.editing.editing import Edit, edited_texts, reason_against
from reconciler.editing.writing import FileChange, changed_files
from reconciler.editing.yaml_text import reads_back
from reconciler.errors import BadUsage, ServiceError
from reconciler.files.loading import Loaded
from reconciler.files.references import escaped
from reconciler.files.yaml_document import Document, Layer
from reconciler.files.yaml_loader import parse
from reconciler.kinds import behaviour_of, kinds_by_name
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Change, FieldChange, Origin, Plan, PlanSource
from reconciler.model.public import Count, Public, derived
from reconciler.model.redaction import Mask
from reconciler.model.settings import POSSIBLE_DUPLICATE, PlanOptions
from reconciler.model.text import named, printable, several
from reconciler.model.values import (
    JSON,
    MISSING,
    UNSET,
    Address,
    JSONObject,
    Path,
    leaves,
    map_leaves,
    mapping_of,
    path_text,
    put_at,
    references_in,
    value_at,
)
from reconciler.planning.compare import comparable, live_leaves, written_value
from reconciler.planning.integrations import named as with_names
from reconciler.planning.integrations import with_value
from reconciler.planning.inventory import Inventory
from reconciler.planning.notes import PAUSED_BY_SERVICE
from reconciler.planning.select import Named, Names, check_clear
from reconciler.service.operations import ObjectCalls
from reconciler.service.transport import Transport

_OPERATION = "activity"
_REFUSED = (None, 402, 403, 404)
"""The status of an answer that has no log: not offered to keys, not paid for, or without scope."""
_NAMES = {"enabled": "paused"}
"""The log calls the field `enabled`, with the values of `paused` (service.md, 15.64)."""
_DRIFT = (Origin.LIVE, Origin.BOTH, Origin.UNKNOWN)
"""Where nothing was recorded as applied, a difference from the files counts, too."""
_CONFLICT = "conflict: the configuration changed too; edit the file, or apply sets it back"
_SECRET = "it contains a known secret"  # noqa: S105 - a message
_UNWRITABLE = "strict YAML cannot express it"
_NO_EFFECT = "the files cannot express the live value"
_DELETED = "its live object was deleted; remove it from the files, or apply creates it again"
_NAME = "set `name` or `lifecycle.renamed_from`"


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
    applied = (inventory or Inventory()).counted(live).entries
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


class Place(Struct, frozen=True):
    """One value for a file: the edit, and the layer that gets it."""

    layer: Layer
    edit: Edit


class Placed(Struct, frozen=True):
    """A live value that is written.

    `layer` is `resource`, `override ENVIRONMENT`, `defaults of FILE` or `defaults`, `at` the place
    in the new text.
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


class _Value(Struct, frozen=True):
    """A drifted field, where its live value goes in the files, or why it does not."""

    address: Address
    field: DriftedField
    places: tuple[Place, ...]
    reason: str | None


class Pulled(Struct, frozen=True):
    """What `drift --write` writes, what it leaves out, and the drift of before."""

    drift: Drift
    placed: tuple[Placed, ...]
    left_out: tuple[LeftOut, ...]
    changes: Mapping[str, FileChange]


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
    session, options = open_session(workspace), options or PlanOptions()
    async with connected(session) as transport:
        inventory = inventory_of(session, options)
        if not names and (inventory is None or inventory.record is None):
            raise BadUsage(
                "without an inventory, it is unknown what changed in live state",
                hint="name the resources whose live values the files should have",
            )
        plan, live = await planned(session, transport, options, inventory)
    drift = drift_of(plan, live, inventory, names)
    values = [_value(session, live, item, field) for item in drift.objects for field in item.fields]
    try:
        drafted = _drafted(workspace, values)
    except InvalidConfiguration:
        values = _without_errors(workspace, values)
        drafted = _drafted(workspace, values)
    after = plan_of(drafted, live, options, inventory)
    differing = {(it.address, field.path) for it in after.effective for field in it.fields}
    values = [
        replace(value, reason=value.reason or _NO_EFFECT)
        if (value.address, value.field.change.path) in differing or value.address in after.unclear
        else value
        for value in values
    ]
    texts = _texts(workspace, values)
    files = {
        name: parse(text.encode(), name, DiagnosticCollector()) for name, text in texts.items()
    }
    pulled = Pulled(
        drift,
        tuple(_placed(values, files)),
        tuple(_left_out(drift, values, files if write else {})),
        changed_files(workspace.folder, texts, write=write),
    )
    return workspace.masked(Reported(pulled, warnings_of(session.loaded, plan), transport.calls))


def _placed(values: Iterable[_Value], files: Mapping[str, Document]) -> Iterator[Placed]:
    """Yield what is written, with its places in the new files."""
    for value in values:
        for place in value.places if value.reason is None else ():
            document = place.layer.document
            at = files.get(document.file, document).mark(place.edit.path)
            yield Placed(value.address, value.field.path, place.layer.label, at)


def _left_out(
    drift: Drift, values: Iterable[_Value], files: Mapping[str, Document]
) -> Iterator[LeftOut]:
    """Yield what is not written. A place that cannot be edited is that in the new files."""
    for value in values:
        reason = value.reason
        for place in value.places if reason is not None else ():
            document = place.layer.document
            if reason == reason_against(document, place.edit):
                reason = reason_against(files.get(document.file, document), place.edit)
        if reason is not None:
            yield LeftOut(value.address, value.field.path, reason)
    for address in drift.deleted:
        yield LeftOut(address, (), _DELETED)
    for address, name in drift.renamed.items():
        yield LeftOut(
            address, (), f"its live object was probably renamed to {named(name)}; {_NAME}"
        )


def _value(session: Session, live: Live, item: DriftedObject, field: DriftedField) -> _Value:
    """Return what the live value of a field changes in the files."""
    address, path, loaded = item.address, field.change.path, session.loaded
    kind, existing = kinds_by_name()[address.kind], live.by_identity[address.kind, item.live_id]
    value = _live_value(kind, existing, field.change)
    table = live.integrations.get(existing.parent_id or "")
    if table is not None and value is not None:
        # Names of integrations where the resource has some.
        body, like = with_value(existing.body, path, value), loaded.desired.resources[address].spec
        value = value_at(with_names(kind, body, table, like=like), path)
    reason = _reason_against(kind, existing, field, value, session.mask)
    places = tuple(_places(loaded, address, field.path, value, field.change.after))
    for place in places:
        reason = reason or reason_against(place.layer.document, place.edit)
    return _Value(address, field, places, reason)


def _reason_against(
    kind: Kind, live: LiveObject, field: DriftedField, value: JSON, mask: Mask
) -> str | None:
    """Return why a live value is not written, None if it can be."""
    if field.conflict:
        return _CONFLICT
    spec: dict[str, JSON] = {}
    for holder, variant in kind.variants:
        tag = (holder.name, variant.tag)
        put_at(spec, tag, value_at(live.body, tag))
    put_at(spec, field.change.path, value)
    for _, reason in doubtful_paths(kind, spec):
        return reason
    # It masks what is doubtful, too.
    if map_leaves(value, lambda leaf: mask(leaf) if isinstance(leaf, str) else leaf) != value:
        return _SECRET
    return None if reads_back({str(field.path[-1]): value}) else _UNWRITABLE


def _live_value(kind: Kind, live: LiveObject, change: FieldChange) -> JSON:
    """Return a live value as files have it; of a merged object, the keys that differ."""
    leaf = live_leaves(kind, live.body).get(change.path)
    if isinstance(change.before, dict) or leaf is None or leaf.value is None:
        return None if change.before is MISSING else change.before
    # Old servers return numbers and booleans as text. The order of a list stays.
    return written_value(leaf.field, leaf.value) if isinstance(leaf.value, str) else leaf.value


def _places(
    loaded: Loaded, address: Address, path: Path, value: JSON, configured: JSON
) -> Iterator[Place]:
    """Yield what to write, so that a field has a value in this environment only.

    The path has the names of the files. Of mappings, only the keys that differ are written.
    """
    if isinstance(value, dict) and isinstance(configured, dict) and value:
        for name in {**configured, **value}:
            before, after = configured.get(name, MISSING), value.get(name, MISSING)
            if before != after:
                yield from _places(loaded, address, (*path, name), after, before)
        return
    layer = _layer(loaded, address, path)
    if value is not MISSING:
        written = escaped(value)
    else:
        # A key in a lower layer would show through.
        below = (other for other in loaded.places[address].layers if other is not layer)
        is_below = any(value_at(other.value, path) is not MISSING for other in below)
        written = UNSET if is_below else MISSING
    yield Place(layer, Edit((*layer.path, *path), written))


def _layer(loaded: Loaded, address: Address, path: Path) -> Layer:
    """Return the layer that gets the value of a field.

    It is the override of the environment if another one has the value of the resource or of the
    defaults, and if a reference gives it.
    """
    declaration, environment = loaded.declared[address], loaded.desired.environment
    body, resource = declaration.body, declaration.path
    now, nearest = loaded.places[address].source_of(path)
    written = value_at(now.value, nearest) if nearest else MISSING
    is_reference = any(isinstance(leaf, str) and references_in(leaf) for _, leaf in leaves(written))
    listed = body.get("environments")
    is_shared = any(
        value_at(body, ("overrides", str(name), *path)) is MISSING
        for name in (listed if isinstance(listed, list) else loaded.environments)
        if name != environment
    )
    override = (*resource, "overrides", environment)
    if now.path == override or is_reference or is_shared:
        return Layer(declaration.document, override, f"override {environment}")
    is_default = now.path[: len(resource)] != resource
    users = sum(other.kind == address.kind for other in loaded.declared)
    return now if is_default and users == 1 else Layer(declaration.document, resource, "resource")


def _texts(workspace: Workspace, values: Iterable[_Value]) -> dict[str, str]:
    """Return the new texts of the files."""
    places = (place for value in values if value.reason is None for place in value.places)
    return edited_texts(workspace.folder, ((it.layer.document, it.edit) for it in places))


def _drafted(workspace: Workspace, values: Iterable[_Value]) -> Session:
    return open_session(workspace, drafts=_texts(workspace, values))


def _without_errors(workspace: Workspace, values: Sequence[_Value]) -> list[_Value]:
    """Return values, those with a reason that make the files invalid, one after the other."""
    kept: list[_Value] = []
    for value in values:
        try:
            _drafted(workspace, [*kept, value])
            kept.append(value)
        except InvalidConfiguration as error:
            kept.append(replace(value, reason=error.diagnostics[0].message))
    return kept


def pull_summary(pulled: Pulled, verb: str) -> str:
    """Return what is written where, what was left out, and how many values are written."""
    lines = [
        f"{it.at}: set {path_text(it.path)} of {it.address} ({it.layer})" for it in pulled.placed
    ]
    for item in pulled.left_out:
        what = f"{item.address} {path_text(item.path)}".strip()
        lines.append(f"left out: {what}: {item.reason}")
    if pulled.placed:
        values, files = several(len(pulled.placed), "value"), several(len(pulled.changes), "file")
        lines.append(f"{verb} {values} to {files}")
    return "".join(f"{printable(line)}\n" for line in lines or ["No drift."])
