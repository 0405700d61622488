"""Write what changed in live state since the apply into the files: `drift --write`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.authoring.difference import differences_as_text, file_changes
from reconciler.authoring.drift import (
    Drift,
    DriftedField,
    DriftedObject,
    drift_of,
    selected,
)
from reconciler.authoring.editing import Edit
from reconciler.authoring.import_drafts import doubtful_paths
from reconciler.authoring.placing import Place, edited_texts, placing_of
from reconciler.authoring.yaml_text import reads_back
from reconciler.commands.options import PlanRequest
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.diagnostics import InvalidConfiguration, Mark
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.comparison import field_leaves, written_value
from reconciler.model.files import FileChange
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import FieldChange
from reconciler.model.public import Public, derived
from reconciler.model.text import printable, quoted, several
from reconciler.model.values import JSON, MISSING, Path, map_leaves, path_text, put_at, value_at
from reconciler.planning.integrations import named, with_value
from reconciler.planning.inventory import Inventory
from reconciler.render.options import Style
from reconciler.workspace.writing import write_files
from reconciler.workspace.yaml.document import Document

_CONFLICT = "conflict: the configuration changed too; edit the file, or apply sets it back"
_SECRET = "it contains a known secret"  # noqa: S105 - a message
_UNWRITABLE = "strict YAML cannot express it"
_NO_EFFECT = "the files cannot express the live value"
_DECLINED = "it comes from a reference, and was declined"
Ask = Callable[[str], Awaitable[bool]]
"""Asks a person a question; True for yes."""


class Placed(Public, frozen=True):
    """A live value that is written."""

    internal = frozenset({"path", "value"})

    address: Address
    path: Path
    value: JSON
    layer: str
    """`resource`, `override ENVIRONMENT`, `defaults of FILE` or `defaults`."""
    at: Mark
    """The value before the edit."""
    replaces: str = ""
    """The reference that stays for other environments, "" for none."""

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)


class LeftOut(Public, frozen=True):
    """A drifted field that is not written."""

    internal = frozenset({"path"})

    address: Address
    path: Path
    reason: str

    @derived
    def path_(self) -> str:
        """The path as text."""
        return path_text(self.path)


class Pulled(Public, frozen=True):
    """What `drift --write` writes."""

    schema = "drift-written"
    internal = frozenset({"drift", "texts", "changes"})
    version = 2

    drift: Drift
    placed: tuple[Placed, ...]
    left_out: tuple[LeftOut, ...]
    texts: Mapping[str, str]
    changes: Mapping[str, FileChange]
    written: bool = True

    @derived
    def environment(self) -> str:
        """Name of the environment."""
        return self.drift.source.environment

    @derived
    def files(self) -> tuple[str, ...]:
        """The changed files."""
        return tuple(self.texts)

    def __repr__(self) -> str:
        # Texts of files may contain secrets.
        return f"Pulled(files={self.files}, placed={len(self.placed)}, written={self.written})"


class PullRequest(Struct, frozen=True):
    """What to write: the drift of the resources that `names` select, all without names.

    Without `write`, nothing is changed.
    `ask` is None without a terminal: then values that come from a reference are written.
    """

    plan: PlanRequest
    names: tuple[str, ...] = ()
    write: bool = True
    ask: Ask | None = None


class _Value(Struct, frozen=True):
    """A drifted field with what its live value changes in the files."""

    address: Address
    field: DriftedField
    places: tuple[Place, ...]

    @property
    def identity(self) -> tuple[Address, Path]:
        """The resource and the path."""
        return self.address, self.field.change.path


async def pull(request: PullRequest, runtime: Runtime) -> Reported[Pulled]:
    """Write the live values that drifted since the apply into the files.

    What a file gets is loaded and planned first: a value that does not make its difference go is
    left out. No other resource and no other environment changes.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, ServiceError, GitUnavailable.
        ReconcilerError: a place cannot be edited safely.

    """
    session = Session.open(request.plan.workspace, runtime)
    async with session.connected() as transport:
        inventory = session.inventory(request.plan)
        if not request.names and (inventory is None or inventory.record is None):
            raise BadUsage(
                "without an inventory, it is unknown what changed in live state",
                hint="name the resources whose live values the files should have",
            )
        plan, live = await session.planned(transport, request.plan.options, inventory)
        calls = transport.calls
    pulling = _Pulling(session, live, inventory, request)
    pulled = await pulling.pulled(selected(drift_of(plan, live, inventory), plan, request.names))
    if request.write:
        write_files(session.options.folder, pulled.texts)
        pulled = replace(pulled, written=True)
    return Reported(pulled, session.warnings(plan), calls)


class _Pulling:
    """One run: what to write, what is left out."""

    def __init__(
        self, session: Session, live: Live, inventory: Inventory | None, request: PullRequest
    ) -> None:
        self.session = session
        self.live = live
        self.inventory = inventory
        self.request = request
        self.left_out: list[LeftOut] = []
        self.values: list[_Value] = []

    async def pulled(self, drift: Drift) -> Pulled:
        """Return what to write. Fills `values` and `left_out`."""
        for item in drift.objects:
            for field in item.fields:
                value = await self._value(item, field)
                if value is not None:
                    self.values.append(value)
        self._drop_without_effect()
        texts = self._texts(self.values)
        return Pulled(
            drift=drift,
            placed=tuple(
                Placed(
                    value.address,
                    value.field.path,
                    place.edit.value,
                    place.layer,
                    place.now.document.mark((*place.now.path, *value.field.path)),
                    place.replaces,
                )
                for value in self.values
                for place in value.places
            ),
            left_out=tuple(self.left_out),
            texts=texts,
            changes=file_changes((document for document, _ in _edits(self.values)), texts),
            written=False,
        )

    async def _value(self, item: DriftedObject, field: DriftedField) -> _Value | None:
        """Return what a field changes in the files, None if it is left out."""
        live = next(one for one in self.live.of(item.address.kind) if one.id == item.live_id)
        kind = kinds_by_name()[item.address.kind]
        wanted = _live_value(kind, live, field.change)
        wanted = self._named(item.address, live, field.change.path, wanted)
        reason = self._reason_against(kind, live, field, wanted)
        places = tuple(
            placing_of(self.session.loaded, item.address).places_of(
                field.path, wanted, field.change.after
            )
        )
        for place in places if reason is None else ():
            if place.replaces and not await self._is_accepted(item, field.path, place):
                reason = _DECLINED
        if reason is None:
            return _Value(item.address, field, places)
        self._leave_out(item.address, field.path, reason)
        return None

    def _named(self, address: Address, live: LiveObject, path: Path, value: JSON) -> JSON:
        """Return a value with names of integrations where the resource has some."""
        kind, table = kinds_by_name()[live.kind], self.live.integrations.get(live.parent_id or "")
        if table is None or value is None:
            return value
        spec, body = self.session.loaded.desired.resources[address].spec, live.body
        return value_at(named(kind, with_value(body, path, value), table, like=spec), path)

    def _reason_against(
        self, kind: Kind, live: LiveObject, field: DriftedField, value: JSON
    ) -> str | None:
        """Return why a live value is not written, None if it can be."""
        if field.conflict:
            return _CONFLICT
        mask = self.session.mask
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

    async def _is_accepted(self, item: DriftedObject, path: Path, place: Place) -> bool:
        if self.request.ask is None:
            return True
        mark = place.now.document.mark(place.now.path)
        return await self.request.ask(
            f"{item.address} {path_text(path)} comes from {place.replaces} ({mark.file}). Write "
            f"the live value into the {place.layer}, and keep the reference for other environments?"
        )

    def _leave_out(self, address: Address, path: Path, reason: str) -> None:
        self.left_out.append(LeftOut(address, path, reason))

    def _texts(self, values: Iterable[_Value]) -> dict[str, str]:
        """Return the new texts of the files with values written."""
        return edited_texts(self.session.options.folder, _edits(values))

    def _drop_without_effect(self) -> None:
        """Leave out the values whose difference stays in the plan, and those with errors."""
        if not self.values:
            return
        try:
            differing = self._differing(self.values)
        except ReconcilerError:
            self._keep_valid()
            return
        for value in [value for value in self.values if value.identity in differing]:
            self.values.remove(value)
            self._leave_out(value.address, value.field.path, _NO_EFFECT)

    def _keep_valid(self) -> None:
        """Keep the values that give valid files, tried one after the other."""
        tried, self.values = self.values, []
        for value in tried:
            try:
                differs = value.identity in self._differing([*self.values, value])
            except InvalidConfiguration as error:
                self._leave_out(value.address, value.field.path, error.diagnostics[0].message)
            except ReconcilerError as error:
                reason = error.message.removesuffix("; nothing was written")
                self._leave_out(value.address, value.field.path, reason)
            else:
                if differs:
                    self._leave_out(value.address, value.field.path, _NO_EFFECT)
                else:
                    self.values.append(value)

    def _differing(self, values: Sequence[_Value]) -> set[tuple[Address, Path]]:
        """Return the fields that a plan of the edited files would change."""
        session = Session.open(
            self.session.options, self.session.runtime, drafts=self._texts(values)
        )
        plan = session.plan(self.live, self.request.plan.options, self.inventory)
        return {
            (change.address, field.path) for change in plan.effective for field in change.fields
        }


def _edits(values: Iterable[_Value]) -> list[tuple[Document, Edit]]:
    return [(place.document, place.edit) for value in values for place in value.places]


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


def pulled_as_text(pulled: Pulled, style: Style, *, diff: bool) -> str:
    """Return the unified difference of the files, or what is written where."""
    if diff:
        return differences_as_text(pulled.changes, style)
    return "".join(f"{_placed(item)}\n" for item in pulled.placed)


def _placed(item: Placed) -> str:
    where = printable(item.layer)
    where += f"; {printable(item.replaces)} stays for other environments" if item.replaces else ""
    return f"{item.at}: set {printable(path_text(item.path))} of {item.address} ({where})"


def pull_summary(pulled: Pulled) -> str:
    """Return what was left out, and how many values were written."""
    lines = [
        f"left out: {item.address} {printable(path_text(item.path))}: {printable(item.reason)}"
        for item in pulled.left_out
    ]
    lines += [
        f"left out: {address}: its live object was deleted; remove it from the files, or apply "
        "creates it again"
        for address in pulled.drift.deleted
    ]
    lines += [
        f"left out: {address}: its live object was probably renamed to {quoted(name)}; set "
        "`name` or `lifecycle.renamed_from`"
        for address, name in pulled.drift.renamed.items()
    ]
    verb = "Wrote" if pulled.written else "Would write"
    where = several(len(pulled.texts), "file")
    if pulled.placed:
        lines.append(f"{verb} {several(len(pulled.placed), 'value')} to {where}")
    elif not lines:
        lines.append("No drift. Live state is as in the files or as applied.")
    return "".join(f"{line}\n" for line in lines)
