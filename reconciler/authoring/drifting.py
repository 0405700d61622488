"""The use case `drift`: what changed in live state since the git base, and the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.authoring.difference import differences_as_text
from reconciler.authoring.drift import (
    OPERATION,
    Attribution,
    Drift,
    DriftedField,
    DriftedObject,
    Placed,
    Pulled,
    attributed,
)
from reconciler.client import Transport
from reconciler.commands.options import PlanRequest
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.errors import GitUnavailable
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.live import OTHER_TOOL, Live
from reconciler.model.naming import Named, Names
from reconciler.model.plan import Change, FieldChange, Origin, Plan
from reconciler.model.policy import POSSIBLE_DUPLICATE
from reconciler.model.text import listed, printable, quoted, several
from reconciler.model.values import path_text
from reconciler.planning.base import Base
from reconciler.reading.calls import ObjectCalls
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import Colour, RenderOptions, Style
from reconciler.render.plan_document import base_name
from reconciler.render.plan_fields import FieldLine, plain_lines

_PAUSED_BY_SERVICE = "paused-by-service"
"""The consequence of an unpause that says that the service probably paused the object."""
_DRIFT = (Origin.LIVE, Origin.BOTH)
_MOST_LISTED = 5
_COLUMNS = (
    Column("field", padded=False),
    Column("configured", padded=False),
    Column("live", " -> ", padded=False),
    Column("changed", "  (", ")", padded=False),
)
_UNATTRIBUTED = "by the service or an API key"
_BY_SERVICE = "probably paused by the service after failures; fix the cause before it is unpaused"


def drift_of(plan: Plan, base: Base) -> Drift:
    """Return the drift that a plan with a git base would set back."""
    by_address: dict[Address, list[Change]] = {}
    for change in plan.changes:
        by_address.setdefault(change.address, []).append(change)
    created = set(_created(plan, base))
    doubled = [refusal for refusal in plan.refusals if refusal.rule == POSSIBLE_DUPLICATE]
    renamed = {refusal.addresses[0]: refusal.objects[0].name for refusal in doubled}
    explained = {address for refusal in doubled for address in refusal.addresses}
    in_order = sorted(by_address, key=lambda address: (address.kind, address.key))
    objects = (_object(by_address[address]) for address in in_order)
    return Drift(
        source=plan.source,
        objects=tuple(item for item in objects if item is not None),
        compared=len(by_address),
        deleted=tuple(sorted(created - explained)),
        renamed={address: name for address, name in renamed.items() if address in created},
        unmanaged=len(plan.unmanaged),
        remarks=tuple(note.message for note in plan.notes if note.code == OTHER_TOOL),
    )


def _object(changes: list[Change]) -> DriftedObject | None:
    fields = [field for change in changes for field in _drifted(change)]
    first = changes[0]
    if not fields or first.live_id is None:
        return None
    rules = {item.rule for change in changes for item in change.consequences}
    return DriftedObject(
        address=first.address,
        name=first.name,
        live_id=first.live_id,
        fields=tuple(map(DriftedField, fields)),
        parent_name=first.parent_name,
        at=next((change.at for change in changes if change.at is not None), None),
        paused_by_service=_PAUSED_BY_SERVICE in rules,
    )


def _drifted(change: Change) -> Iterator[FieldChange]:
    for field in change.fields:
        if field.origin in _DRIFT and not field.secret:
            yield field


def _created(plan: Plan, base: Base) -> Iterator[Address]:
    """Yield the resources of the base that a plan creates again."""
    for change in plan.changes:
        if change.action is Action.CREATE and change.address in base.present:
            yield change.address


class DriftRequest(Struct, frozen=True):
    """What to compare: the resources that `names` select, all without names.

    `attribute`: read the activity log of what drifted, one call an object.
    """

    plan: PlanRequest
    names: tuple[str, ...] = ()
    attribute: bool = True


async def drift(request: DriftRequest, runtime: Runtime) -> Reported[Drift]:
    """Return what changed in live state since the git base.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, ServiceError.
        GitUnavailable: there is no base to compare with.

    """
    session = Session.open(request.plan.workspace, runtime)
    async with session.connected() as transport:
        base = required_base(session, request.plan)
        plan, live = await session.planned(transport, request.plan.options, base)
        result = selected(drift_of(plan, base), plan, request.names)
        if request.attribute:
            result = await attributed(result, _calls_of(plan, live, transport))
        return Reported(result, session.warnings(plan), transport.calls)


def required_base(session: Session, request: PlanRequest) -> Base:
    """Return the git base, since which drift is what changed.

    Raises GitUnavailable without one, and for one that may be a commit of the change itself.
    """
    base = session.base(request)
    if base is None:
        raise GitUnavailable(
            "no git base to compare live state with",
            hint="run in a git clone in which the files are committed",
        )
    if not base.merged:
        branch = session.required_history().branch
        message = f"{branch} does not contain the base {base.commit[:7]}"
        raise GitUnavailable(message, hint=f"use --base with a commit of {branch}")
    return base


def selected(drift: Drift, plan: Plan, names: Sequence[str]) -> Drift:
    """Return the drift of the resources that texts name, all without texts.

    Raises BadUsage for a text that names nothing.
    """
    if not names:
        return drift
    known = Names(
        Named(change.address, (change.live_id,) if change.live_id else (), (change.name,))
        for change in {change.address: change for change in plan.changes}.values()
    )
    chosen = {item.address for text in names for item in known.named(text)}
    return replace(
        drift,
        objects=tuple(item for item in drift.objects if item.address in chosen),
        deleted=tuple(address for address in drift.deleted if address in chosen),
        renamed={address: name for address, name in drift.renamed.items() if address in chosen},
        compared=len(chosen),
    )


def _calls_of(
    plan: Plan, live: Live, transport: Transport
) -> Callable[[DriftedObject], ObjectCalls | None]:
    """Return a function that returns the operations of an object, None without activity."""
    objects = {(item.kind, item.id): item for kind in all_kinds() for item in live.of(kind.name)}
    kinds = {
        kind.name: kind
        for kind in all_kinds()
        if any(item.name == OPERATION and item.scope for item in kind.operations)
    }

    def calls(item: DriftedObject) -> ObjectCalls | None:
        kind = kinds.get(item.address.kind)
        body = objects.get((item.address.kind, item.live_id))
        if kind is None or body is None:
            return None
        return ObjectCalls(transport, kind, plan.source.organization, body, live.dialect)

    return calls


def drift_document(drift: Drift, _: RenderOptions) -> Document:
    """Return what drifted, each field with its configured and its live value."""
    rows = tuple(row for item in drift.objects for row in _rows(item))
    after = [*_rest(drift), *(f"note: {text}" for text in drift.remarks)]
    if drift.objects:
        after.append(
            "hint: reconciler pull writes live values into the files; apply sets them back"
        )
    return Document(
        (Cell(f"Drift of {drift.source.environment}"),),
        (Cell(f"Environment {drift.source.environment} · base {_base(drift)}"),),
        (Table(_COLUMNS, rows, headed=False, indent=6, noun="field"),),
        _counts(drift),
        tuple(after),
    )


def _rows(item: DriftedObject) -> Iterator[Row]:
    parent = f" in {item.parent_name}" if item.parent_name else ""
    place = f"  {item.at.file}:{item.at.line}" if item.at is not None else ""
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(f'"{item.name}"')
    group = Group(name, f"{parent}{place}", "~")
    for field in item.fields:
        about = Cell(_about(item, field))
        for line in _lines(item, field):
            sides = ("…", "…") if line.hunk else (line.before or "-", line.after or "-")
            cells = (Cell(line.name, code=True), *(Cell(side, code=True) for side in sides), about)
            yield Row(cells, group=group, lines=line.hunk)


def pulled_as_text(pulled: Pulled, style: Style, *, diff: bool) -> str:
    """Return the unified difference of the files, or what is written where."""
    if diff:
        return differences_as_text(pulled.changes, style)
    return "".join(f"{_placed(item)}\n" for item in pulled.placed)


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
        lines.append("No drift. Live state has not changed since the base.")
    return "".join(f"{line}\n" for line in lines)


def _placed(item: Placed) -> str:
    stays = f" ({printable(item.replaces)} stays for other environments)" if item.replaces else ""
    place = f"{item.at}: {item.address} {printable(path_text(item.path))}"
    return f"{place} -> {printable(item.layer)}{stays}"


def _base(drift: Drift) -> str:
    source = drift.source
    distance = several(source.base_commits, "commit")
    return base_name(source) + (f" ({distance} ago)" if source.base_commits else "")


def _lines(item: DriftedObject, field: DriftedField) -> list[FieldLine]:
    """Return the lines of a field, with the configured value before the live one."""
    change = replace(field.change, before=field.change.after, after=field.change.before)
    return list(plain_lines(Change(item.address, Action.UPDATE, item.name, fields=(change,))))


def _about(item: DriftedObject, field: DriftedField) -> str:
    """Return what is known about a field: who changed it and when, and conflicts."""
    parts = ["conflict: the configuration changed too"] if field.conflict else []
    if item.paused_by_service and field.change.path == ("paused",):
        parts.append(_BY_SERVICE)
    if field.attribution is not None:
        parts.append(_attribution(field.attribution))
    return "; ".join(parts)


def _attribution(attribution: Attribution) -> str:
    by = f"by {printable(attribution.by)}" if attribution.by is not None else _UNATTRIBUTED
    return f"{by}, {printable(attribution.at)}"


def _counts(drift: Drift) -> str:
    if drift.empty:
        count = several(drift.compared, "resource")
        return f"No drift. Live state has not changed since the base ({count})."
    if not drift.objects:
        return ""
    fields = several(sum(len(item.fields) for item in drift.objects), "field")
    of = several(drift.compared, "resource")
    return f"Drift in {len(drift.objects)} of {of} ({fields})."


def _rest(drift: Drift) -> Iterator[str]:
    if drift.deleted:
        names = listed([str(address) for address in drift.deleted], _MOST_LISTED)
        yield f"{several(len(drift.deleted), 'live object')} deleted since the base: {names}"
    if drift.renamed:
        names = listed(
            [f"{address} to {quoted(name)}" for address, name in drift.renamed.items()],
            _MOST_LISTED,
        )
        yield f"{several(len(drift.renamed), 'live object')} probably renamed: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"
