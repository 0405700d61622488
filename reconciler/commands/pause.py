"""`reconciler pause` and `unpause`: a plan of one action, applied like any other.

They select objects by name, by project, and by destination ("the warehouse is down").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.apply.execution import Screen, apply, check_policy, no_terminal
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    all_of,
    auto_approve_option,
    exports_options,
    log_option,
    next_command,
    text_or_json_option,
    workspace_of,
)
from reconciler.commands.process import ByteOutput, is_interactive, write_note, write_report
from reconciler.commands.screen import Terminal, print_end, progress, render_options, run_shown
from reconciler.commands.sending import Applied, Outputs, Verification
from reconciler.commands.session import (
    PlanResult,
    Session,
    connected,
    open_session,
    plan_context,
    shown_plan,
)
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
from reconciler.planning.places import Places
from reconciler.planning.select import PlanContext, select
from reconciler.service.transport import Transport

_MOST_LISTED = 10

pausing_options = all_of(
    exports_options,
    option(
        "--destination",
        "destinations",
        multiple=True,
        metavar="GLOB",
        group="Selection",
        help="Only exports to these destinations: a type, or where it sends, such as snowflake, "
        "'s3://acme-*' or '*.acme.example*'.",
    ),
    option("--reason", metavar="TEXT", help="Reason to record in the audit log."),
    option("--dry-run", is_flag=True, help="Show the plan; change nothing."),
    auto_approve_option,
    log_option("Append an audit log: JSON lines, one for each request."),
    text_or_json_option("json: only events on stdout, as in the audit log."),
)
"""The names and the options that both commands have."""


def toggled(action: Action, names: tuple[str, ...], options: dict[str, Any]) -> int:
    """Pause or unpause objects, print how that ended, and return the exit code."""
    is_json = options["output_format"] == "json"
    if not (names or options["project"] or options["destinations"]):
        raise BadUsage(
            "no export is named",
            hint="pass NAME, --project or --destination; '*' is every export",
        )
    if options["reason"] is not None and options["log_file"] is None and not is_json:
        raise BadUsage("--reason is for the audit log", hint="pass --log-file FILE, too")
    terminal = Terminal(progress(), render_options(), is_json=is_json)

    def show(result: PlanResult) -> None:
        plan = result.plan
        if not plan.empty or plan.refusals or is_json:
            terminal.show(result)
            return
        terminal.progress.clear()
        addresses = [change.address for change in plan.changes]
        write_report(f"already {action}d: {listed(addresses, _MOST_LISTED)}\n")
        for note in plan.notes:
            write_note(f"note: {note.about}: {note.message}\n")

    def report(report: Report) -> None:
        if report.done or report.failed or report.skipped:
            terminal.report(report)

    work = partial(
        pause,
        names=names,
        action=action,
        projects=options["project"],
        approve=terminal.approve if is_interactive() and not is_json else None,
        outputs=Outputs(options["log_file"], ByteOutput() if is_json else None, options["reason"]),
        screen=Screen(show, report),
        **{name: options[name] for name in ("destinations", "dry_run", "auto_approve")},
    )
    applied = run_shown(work, workspace_of(options), terminal.progress)
    print_end(applied)
    done = [str(end.change.address) for end in applied.ended.report.done]
    if done and action is Action.UNPAUSE:
        words = next_command("backfill", *done, "--since-pause")
        write_note(f"hint: export what the pause skipped:\n  {words}\n")
    return applied.ended.exit_code


@command(
    "pause",
    examples=(
        ("pause lake", "Pause an export"),
        ("pause --destination snowflake --dry-run", "Show what would pause if Snowflake is down"),
        ("pause 'shop-*' --reason 'new warehouse' --log-file audit.jsonl", "Record the reason"),
    ),
    page="docs/operations.md",
)
@pausing_options
def pause_command(names: tuple[str, ...], **options: Any) -> int:
    """Pause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. NAME, --project and --destination together select exports that all of them match.
    Paused exports skip their runs. Set `paused: true` in the files, too, so that the next apply
    keeps it.
    """
    return toggled(Action.PAUSE, names, options)


@command(
    "unpause",
    examples=(
        ("unpause lake", "Unpause an export; its skipped runs are not made up for"),
        ("unpause --destination snowflake", "Unpause every export to Snowflake"),
    ),
    page="docs/operations.md",
)
@pausing_options
def unpause_command(names: tuple[str, ...], **options: Any) -> int:
    """Unpause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. NAME, --project and --destination together select exports that all of them match. It
    prints the command that exports what the pause skipped: `backfill --since-pause`.
    """
    return toggled(Action.UNPAUSE, names, options)


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
            text = "it is unmanaged: no apply changes it"
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
        places = Places.of(target.kind)
        main = [text for place in places.of_body(body) for _, text in place.parts[:1]]
        where = [*places.reach(body).places, *main]
        tag = str(value.get(variant.tag))
        shown = " ".join(dict.fromkeys(f"{tag} {''.join(where[:1])}".split()))
        summary = variant.summary(value)
        return tuple(map(printable, (shown, tag, *where, summary, summary.removeprefix(f"{tag} "))))
    return ()
