"""The use case `drift --write`: live values into the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.drift import Drift, DriftedField, drift_of
from reconciler.commands.edits import FileChange, file_changes
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
from reconciler.editing.writing import write_files
from reconciler.editing.yaml_text import reads_back
from reconciler.errors import BadUsage
from reconciler.files.loading import Loaded
from reconciler.files.references import escaped
from reconciler.files.yaml.document import Document, Layer
from reconciler.files.yaml.loader import parse
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
from reconciler.planning.compare import field_leaves, written_value
from reconciler.planning.integrations import named as with_names
from reconciler.planning.integrations import with_value
from reconciler.planning.inventory import Inventory

_CONFLICT = "conflict: the configuration changed too; edit the file, or apply sets it back"
_SECRET = "it contains a known secret"  # noqa: S105 - a message
_UNWRITABLE = "strict YAML cannot express it"
_NO_EFFECT = "the files cannot express the live value"
_DELETED = "its live object was deleted; remove it from the files, or apply creates it again"
_OVERRIDES = "overrides"
_NAME = "set `name` or `lifecycle.renamed_from`"


class Place(Struct, frozen=True):
    """One value for a file: the edit, and the label of its layer."""

    document: Document
    edit: Edit
    layer: str


class Placing(Struct, frozen=True):
    """Where the values of a resource of a loaded environment may be written."""

    loaded: Loaded
    address: Address

    def places_of(self, path: Path, value: JSON, configured: JSON) -> Iterator[Place]:
        """Yield what to write, so that a field has a value in this environment only.

        The path has the names of the files. Of mappings, only the keys that differ are written.
        """
        if isinstance(value, dict) and isinstance(configured, dict) and value:
            for name in {**configured, **value}:
                before, after = configured.get(name, MISSING), value.get(name, MISSING)
                if before != after:
                    yield from self.places_of((*path, name), after, before)
            return
        yield self._place(path, value)

    def _place(self, path: Path, value: JSON) -> Place:
        places = self.loaded.places[self.address]
        now, nearest = places.source_of(path)
        written = value_at(now.value, nearest) if nearest else MISSING
        is_reference = any(
            isinstance(leaf, str) and bool(references_in(leaf)) for _, leaf in leaves(written)
        )
        layer = self._layer(now, path, is_reference=is_reference)
        if value is MISSING:
            # A key in a lower layer would show through.
            below = (other.value for other in places.layers if other is not layer)
            is_below = any(value_at(other, path) is not MISSING for other in below)
            value = UNSET if is_below else MISSING
        else:
            value = escaped(value)
        return Place(layer.document, Edit((*layer.path, *path), value), layer.label)

    def _layer(self, now: Layer, path: Path, *, is_reference: bool) -> Layer:
        """Return the layer that gets the value of a field, which is in a layer now."""
        declaration, environment = self.loaded.declared[self.address], self.environment
        document, resource = declaration.document, declaration.path
        override = (*resource, _OVERRIDES, environment)
        if now.path == override or is_reference or self._is_shared(declaration.body, path):
            return Layer(document, override, f"override {environment}")
        is_default = now.path[: len(resource)] != resource
        users = sum(other.kind == self.address.kind for other in self.loaded.declared)
        return now if is_default and users == 1 else Layer(document, resource, "resource")

    def _is_shared(self, body: Mapping[str, JSON], path: Path) -> bool:
        """Return whether another environment has the value of the resource or of the defaults."""
        listed = body.get("environments")
        return any(
            value_at(body, (_OVERRIDES, str(name), *path)) is MISSING
            for name in (listed if isinstance(listed, list) else self.loaded.environments)
            if name != self.environment
        )

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self.loaded.desired.environment


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

    def placed(self, written: Mapping[str, Document]) -> Iterator[Placed]:
        """Yield what is written. `written` are the files after it."""
        for place in self.places if self.reason is None else ():
            document = written.get(place.document.file, place.document)
            at = document.mark(place.edit.path)
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
    written = {
        name: parse(text.encode(), name, DiagnosticCollector()) for name, text in texts.items()
    }
    pulled = Pulled(
        drift=drift,
        placed=tuple(placed for value in values for placed in value.placed(written)),
        left_out=tuple(_left_out(drift, values)),
        changes=file_changes((place.document for item in values for place in item.places), texts),
    )
    return workspace.masked(Reported(pulled, warnings_of(session.loaded, plan), transport.calls))


def _left_out(drift: Drift, values: Iterable[_Value]) -> Iterator[LeftOut]:
    for value in values:
        if value.reason is not None:
            yield LeftOut(value.address, value.field.path, value.reason)
    for address in drift.deleted:
        yield LeftOut(address, (), _DELETED)
    for address, name in drift.renamed.items():
        reason = f"its live object was probably renamed to {named(name)}; {_NAME}"
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
        value = value_at(
            with_names(kind, with_value(item.body, path, value), table, like=like), path
        )
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
            open_session(session.workspace, drafts=_texts(session, [*kept, value]))
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
    drafted = open_session(session.workspace, drafts=_texts(session, values))
    plan = plan_of(drafted, live, options, inventory)
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
