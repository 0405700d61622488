"""Pause and unpause live objects: the wanted state as resources, from which the planner plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Reason
from reconciler.model.kind import Field, Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Note, Plan
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.text import printable
from reconciler.planning.differ import is_ignored
from reconciler.planning.planner import PlanContext, make_plan


class Toggling(Struct, frozen=True):
    """What is paused or unpaused: live objects, by the address of their resource or of their id.

    `written`: the configuration is edited accordingly.
    """

    objects: dict[Address, LiveObject]
    action: Action
    desired: Desired
    kinds: Sequence[Kind]
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
            self.kinds,
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
        for kind in self.kinds:
            for field in kind.fields if kind.name == kind_name else ():
                if field.toggle is not None and self.action in (field.toggle.on, field.toggle.off):
                    return field, self.action is field.toggle.on
        raise ValueError(f"{kind_name} has no action {self.action}")

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
