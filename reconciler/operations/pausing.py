"""The use cases `pause` and `unpause`: a plan of one action, applied like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.authoring.difference import file_changes
from reconciler.authoring.editing import Edit
from reconciler.authoring.placing import edited_texts, placing_of
from reconciler.client import Transport
from reconciler.commands.applying import Applied, ApplyRequest, Screen, apply
from reconciler.commands.options import PlanRequest, WorkspaceOptions
from reconciler.commands.recording import Outputs
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.address import Address
from reconciler.model.files import FileChange
from reconciler.model.kind import Action, Field
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note, Plan, Reason
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.text import listed, printable
from reconciler.operations.targets import read_targets
from reconciler.planning.differ import is_ignored
from reconciler.planning.draft import PlanContext
from reconciler.planning.planner import make_plan
from reconciler.workspace.writing import write_files
from reconciler.workspace.yaml.document import Document

_MOST_LISTED = 5


class Toggling(Struct, frozen=True):
    """What is paused or unpaused: live objects, by the address of their resource or of their id.

    `written`: the configuration is edited accordingly.
    """

    objects: dict[Address, LiveObject]
    action: Action
    desired: Desired
    written: bool = False

    def plan(self, live: Live, policy: Policy, context: PlanContext) -> Plan:
        """Return the plan that pauses or unpauses the objects, and changes nothing else. Pure.

        The rest of the workspace takes part in matching and in the limits of the policy, not in
        the plan. Raises AmbiguousIdentity.
        """
        wanted = {address: self._resource(address) for address in self.objects}
        plan = make_plan(
            replace(self.desired, resources={**self.desired.resources, **wanted}),
            live,
            policy.without_pruning(),
            all_kinds(),
            context=replace(
                context, base=None, options=replace(context.options, only=frozenset(wanted))
            ),
        )
        notes = tuple(map(self._note, self.objects))
        changes = tuple(
            change
            if change.action is Action.NO_OP
            else replace(change, reasons=(Reason.REQUESTED,))
            for change in plan.changes
        )
        return replace(plan, changes=changes, unmanaged=(), ignored=(), notes=notes)

    def setting(self, kind_name: str) -> tuple[Field, bool]:
        """Return the field of a kind that the action sets, and the value that it gets."""
        toggled = kinds_by_name()[kind_name].toggled(self.action)
        if toggled is None:
            raise ValueError(f"{kind_name} has no action {self.action}")
        return toggled

    def differing(self) -> Iterator[Address]:
        """Yield the resources whose configuration sets the other value."""
        for address in self.objects:
            field, value = self.setting(address.kind)
            resource = self.desired.resources.get(address)
            if resource is not None and bool(resource.spec.get(field.name)) is not value:
                yield address

    def _resource(self, address: Address) -> Resource:
        """Return an object as a resource with the wanted state and nothing else."""
        field, value = self.setting(address.kind)
        declared, live = self.desired.resources.get(address), self.objects[address]
        return Resource(
            address,
            {"name": live.name, field.name: value},
            parent=ParentRef(id=live.parent_id) if live.parent_id is not None else None,
            pinned_id=live.id,
            mark=declared.mark if declared is not None else None,
        )

    def _note(self, address: Address) -> Note:
        """Return what the next apply does."""
        field, value = self.setting(address.kind)
        resource = self.desired.resources.get(address)
        if resource is None:
            text = "it is unmanaged: no apply changes it"
        elif is_ignored((field.name,), resource.lifecycle):
            text = f"`{field.name}` is in `ignore_changes`: no apply changes it"
        elif self.written and address in self.differing():
            text = f"--write sets `{field.name}: {_yaml(value)}`: the next apply keeps it"
        else:
            text = _of_next_apply(resource, field, value)
        return Note("next-apply", printable(text), about=address)


def _of_next_apply(resource: Resource, field: Field, value: Any) -> str:
    current = resource.spec.get(field.name)
    if current is None:
        return f"the configuration does not set `{field.name}`: the next apply keeps it"
    if current is value:
        return f"the configuration sets `{field.name}: {_yaml(value)}`: the next apply keeps it"
    mark = resource.near((field.name,))
    place = f" ({mark})" if mark is not None else ""
    return (
        f"the configuration sets `{field.name}: {_yaml(current)}`{place}: the next apply reverts "
        "this; to keep it, pass --write, or edit the file"
    )


def _yaml(value: Any) -> str:
    return str(value).lower()


class PauseRequest(Struct, frozen=True):
    """Which objects to pause or unpause, by address, id, key, name or glob.

    write
        Whether to set the field in the files, too, in this environment only.
    auto_approve, can_ask
        Whether to skip the question for approval, and whether there is a terminal to ask on.
    outputs
        Where the events of the run go, with the reason.
    """

    workspace: WorkspaceOptions
    names: tuple[str, ...]
    action: Action
    write: bool = False
    auto_approve: bool = False
    can_ask: bool = True
    outputs: Outputs = field(default_factory=Outputs)


class Paused(Struct, frozen=True):
    """How it ended, and the changes of the files that were written, with secrets masked."""

    applied: Applied
    files: Mapping[str, FileChange]


async def pause(request: PauseRequest, runtime: Runtime, screen: Screen) -> Paused:
    """Pause or unpause objects: show the plan, get approval, apply it, verify it.

    Raises what `apply` raises, and BadUsage for a name that matches nothing.
    """
    toggler = _Toggler(request, runtime)
    applied = await apply(
        ApplyRequest(
            PlanRequest(request.workspace, no_base=True),
            auto_approve=request.auto_approve,
            can_ask=request.can_ask,
            outputs=request.outputs,
            make=toggler.make,
        ),
        runtime,
        screen,
    )
    if not applied.ended.report.complete:
        return Paused(applied, {})
    return Paused(applied, toggler.write())


class _Toggler(Struct):
    """Makes the plan. `texts` are the new texts of the files, None before the first plan."""

    request: PauseRequest
    runtime: Runtime
    texts: Mapping[str, str] | None = None
    changes: Mapping[str, FileChange] = field(default_factory=dict)

    async def make(self, session: Session, transport: Transport) -> tuple[Plan, Live]:
        """Return the plan of now, and the live state that it is made from."""
        targets = await read_targets(session, transport, str(self.request.action))
        toggling = Toggling(
            {item.address: item.live for item in targets.named(self.request.names)},
            self.request.action,
            session.loaded.desired,
            written=self.request.write,
        )
        if self.request.write and self.texts is None:
            self._edit(session, toggling)
        context = session.plan_context(PlanRequest(self.request.workspace).options)
        plan = session.judged(lambda policy: toggling.plan(targets.live, policy, context))
        return plan, targets.live

    def _edit(self, session: Session, toggling: Toggling) -> None:
        """Prepare the new texts of the files, and load them. Raises ReconcilerError."""
        edits: list[tuple[Document, Edit]] = []
        for address in toggling.differing():
            setting, value = toggling.setting(address.kind)
            configured = toggling.desired.resources[address].spec.get(setting.name)
            places = placing_of(session.loaded, address).places_of(
                (setting.name,), value, configured
            )
            edits += ((place.document, place.edit) for place in places)
        self.texts = edited_texts(session.options.folder, edits)
        self.changes = file_changes((document for document, _ in edits), self.texts)
        drafted = Session.open(session.options, self.runtime, drafts=self.texts)
        others = Toggling(toggling.objects, toggling.action, drafted.loaded.desired)
        left = [str(address) for address in others.differing()]
        if left:
            raise ReconcilerError(
                f"the files can't be edited for {listed(left, _MOST_LISTED)}; nothing was sent",
                hint="leave out --write, and edit the files",
            )

    def write(self) -> Mapping[str, FileChange]:
        """Write the files, and return their changes. Raises ReconcilerError."""
        if self.texts:
            write_files(self.request.workspace.folder, self.texts)
        return self.changes
