"""The use case `drift --write`: live values into the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.drift import Drift, DriftedField, DriftedObject, drift_of
from reconciler.commands.edits import FileChange, changed_files
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
from reconciler.editing.yaml_text import reads_back
from reconciler.errors import BadUsage
from reconciler.files.loading import Loaded
from reconciler.files.references import escaped
from reconciler.files.yaml_document import Document, Layer
from reconciler.files.yaml_loader import parse
from reconciler.kinds import kinds_by_name
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import FieldChange
from reconciler.model.redaction import Mask
from reconciler.model.settings import PlanOptions
from reconciler.model.text import named, printable, several
from reconciler.model.values import (
    JSON,
    MISSING,
    UNSET,
    Address,
    Path,
    leaves,
    map_leaves,
    path_text,
    put_at,
    references_in,
    value_at,
)
from reconciler.planning.compare import live_leaves, written_value
from reconciler.planning.integrations import named as with_names
from reconciler.planning.integrations import with_value

_CONFLICT = "conflict: the configuration changed too; edit the file, or apply sets it back"
_SECRET = "it contains a known secret"  # noqa: S105 - a message
_UNWRITABLE = "strict YAML cannot express it"
_NO_EFFECT = "the files cannot express the live value"
_DELETED = "its live object was deleted; remove it from the files, or apply creates it again"
_NAME = "set `name` or `lifecycle.renamed_from`"


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
