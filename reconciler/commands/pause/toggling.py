"""The use cases `pause` and `unpause`: a plan of one action, applied like any other.

They select objects by name, by project, and by destination ("the warehouse is down").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.apply.execution import Screen, apply, check_policy
from reconciler.commands.process import no_terminal
from reconciler.commands.sending import Applied, Outputs, Verification
from reconciler.commands.session import Session, connected, open_session, plan_context, shown_plan
from reconciler.commands.targets import Target, read_targets
from reconciler.commands.workspace import Workspace
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.event import Ended, Report
from reconciler.model.kind import Action, Field
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note, Plan, Reason
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.settings import PlanOptions, Policy
from reconciler.model.text import fits_any, json_shown, listed, printable, quoted, several
from reconciler.model.values import Address, mapping_of
from reconciler.planning.compare import is_ignored, live_fields
from reconciler.planning.inventory import Inventory
from reconciler.planning.make import make_plan
from reconciler.planning.places import place_of, reach_of
from reconciler.planning.select import PlanContext, select
from reconciler.service.transport import Transport

_MOST_LISTED = 10


class Toggling(Struct, frozen=True):
    """What is paused or unpaused: live objects, by the address of their resource or of their id."""

    objects: dict[Address, LiveObject]
    action: Action
    desired: Desired

    def plan(self, live: Live, policy: Policy, context: PlanContext) -> Plan:
        """Return the plan that pauses or unpauses the objects, and changes nothing else. Pure.

        The rest of the workspace takes part in matching and in the limits of the policy, not in
        the plan.
        """
        wanted = {address: self._resource(address) for address in self.objects}
        options = replace(context.options, only=frozenset(wanted))
        selected = select(
            replace(self.desired, resources={**self.desired.resources, **wanted}),
            live,
            replace(policy, prune=False),
            all_kinds(),
            context=replace(context, inventory=None, options=options),
        )
        plan = make_plan(selected)
        acting = [change.address for change in plan.effective] or self.objects
        notes = tuple(map(self._note, acting))
        changes = tuple(
            it if it.action is Action.NO_OP else replace(it, reasons=(Reason.REQUESTED,))
            for it in plan.changes
        )
        return replace(plan, changes=changes, unmanaged=(), ignored=(), notes=notes)

    def _setting(self, kind_name: str) -> tuple[Field, bool]:
        """Return the field of a kind that the action sets, and the value that it gets."""
        toggled = kinds_by_name()[kind_name].toggled(self.action)
        if toggled is None:
            raise ValueError(f"{kind_name} has no action {self.action}")
        return toggled

    def _resource(self, address: Address) -> Resource:
        """Return an object as a resource with the wanted state and nothing else."""
        field, value = self._setting(address.kind)
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
        field, value = self._setting(address.kind)
        resource = self.desired.resources.get(address)
        current = resource.spec.get(field.name) if resource is not None else None
        declared = f"the configuration sets `{field.name}: {json_shown(current)}`"
        if resource is None:
            text = "unmanaged: no apply changes this"
        elif is_ignored((field.name,), resource.lifecycle):
            text = f"`{field.name}` is in `ignore_changes`: no apply changes it"
        elif current is None:
            text = f"the configuration does not set `{field.name}`: the next apply keeps it"
        elif current is value:
            text = f"{declared}: the next apply keeps it"
        else:
            mark = resource.near((field.name,))
            place = f" ({mark})" if mark is not None else ""
            text = f"{declared}{place}: the next apply reverts this; to keep it, edit the file"
        return Note("next-apply", printable(text), about=address)


async def pause(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str] = (),
    action: Action = Action.PAUSE,
    *,
    projects: Sequence[str] = (),
    destinations: Sequence[str] = (),
    dry_run: bool = False,
    approve: Callable[[Plan], Awaitable[bool]] | None = None,
    auto_approve: bool = False,
    outputs: Outputs | None = None,
    screen: Screen | None = None,
) -> Applied:
    """Pause exports, or do the other `action`, UNPAUSE: get approval, apply it, verify it.

    `names` and `projects` are addresses, ids, keys, names or globs, `destinations` globs of types
    and places. Exports match all that is given. Runs that a pause left out are not made. `dry_run`
    only plans.

    Raises what `apply` raises, and BadUsage if nothing is named, or for a name or a destination
    that matches nothing.
    """

    async def make(
        session: Session, transport: Transport, _: PlanOptions, __: Inventory | None
    ) -> tuple[Plan, Live]:
        targets = await read_targets(session, transport, str(action))
        chosen = targets.chosen(names, projects)
        if destinations:
            chosen = sending_to(destinations, chosen)
        objects = {item.address: item.live for item in chosen}
        toggling = Toggling(objects, action, session.loaded.desired)
        context = plan_context(session, PlanOptions())
        return toggling.plan(targets.live, session.loaded.own_policy, context), targets.live

    if dry_run:
        session = open_session(workspace)
        async with connected(session) as transport:
            plan, _ = await make(session, transport, PlanOptions(), None)
            result = await shown_plan(session, transport, plan)
        (screen or Screen()).show(result)
        check_policy(result.plan)
        return Applied(result.plan, Ended(Report()), Verification(), result.calls)
    if approve is None and not auto_approve:
        raise no_terminal()
    return await apply(
        workspace,
        PlanOptions(no_inventory=True),
        approve=approve,
        auto_approve=auto_approve,
        outputs=outputs,
        screen=screen,
        make=make,
    )


def sending_to(globs: Sequence[str], targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the objects with a destination whose type or place a glob matches, in any case.

    Raises BadUsage for a glob that matches none, with the places that there are.
    """
    texts = {target.address: _destination(target) for target in targets}
    chosen: set[Address] = set()
    for glob in globs:
        fitting = {
            address
            for address, of_one in texts.items()
            if any(fits_any(text.lower(), (glob.lower(),)) for text in of_one)
        }
        if not fitting:
            known = Counter(of_one[0] for of_one in texts.values() if of_one)
            places = [f"{place} ({several(n, 'export')})" for place, n in sorted(known.items())]
            raise BadUsage(
                f"no selected export sends to {quoted(glob)} (--destination)",
                hint=f"use a glob of a type or a place; there are: {listed(places, _MOST_LISTED)}",
            )
        chosen |= fitting
    return tuple(target for target in targets if target.address in chosen)


def _destination(target: Target) -> tuple[str, ...]:
    """Return the type with the place, and what else names a destination; nothing without one."""
    body = live_fields(target.kind, target.live.body)
    for item, variant in target.kind.variants:
        value = mapping_of(body.get(item.name))
        main = [text for _, text in place_of(target.kind, body)[1][:1]]
        where = [*reach_of(target.kind, body).places, *main]
        tag = str(value.get(variant.tag))
        shown = " ".join(dict.fromkeys(f"{tag} {''.join(where[:1])}".split()))
        summary = variant.summary(value)
        return tuple(map(printable, (shown, tag, *where, summary, summary.removeprefix(f"{tag} "))))
    return ()
