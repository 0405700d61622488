"""The use cases `pause` and `unpause`: a plan of one action, applied like any other."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.authoring.editing import Edit
from reconciler.authoring.placing import edited_texts, file_changes, placing_of
from reconciler.client import Transport
from reconciler.commands.applying import Applied, ApplyRequest, Screen, apply
from reconciler.commands.options import PlanRequest, WorkspaceOptions
from reconciler.commands.recording import Outputs
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.action import Action
from reconciler.model.file_change import FileChange
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.text import listed
from reconciler.operations.targets import read_targets
from reconciler.planning.pausing import Toggling
from reconciler.workspace.writing import write_files

_MOST_LISTED = 5


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
            all_kinds(),
            written=self.request.write,
        )
        if self.request.write and self.texts is None:
            self._edit(session, toggling)
        context = session.plan_context(PlanRequest(self.request.workspace).options)
        plan = session.judged(lambda policy: toggling.plan(targets.live, policy, context))
        return plan, targets.live

    def _edit(self, session: Session, toggling: Toggling) -> None:
        """Prepare the new texts of the files, and load them. Raises ReconcilerError."""
        edits: dict[str, list[Edit]] = {}
        documents = {}
        differing = list(toggling.differing())
        for address in differing:
            setting, value = toggling.setting(address.kind)
            placing = placing_of(session.loaded, address)
            configured = toggling.desired.resources[address].spec.get(setting.name)
            for place in placing.places_of((setting.name,), value, configured):
                documents[place.document.file] = place.document
                edits.setdefault(place.document.file, []).append(place.edit)
        folder = session.options.folder
        self.texts = edited_texts(folder, documents.values(), edits)
        self.changes = file_changes(documents.values(), self.texts)
        drafted = Session.open(session.options, self.runtime, drafts=self.texts)
        others = Toggling(toggling.objects, toggling.action, drafted.loaded.desired, toggling.kinds)
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
