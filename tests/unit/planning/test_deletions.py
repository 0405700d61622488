"""Objects that are deleted with the project that contains them, and what must not be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.commands.plan import calls_of
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.settings import PlanOptions, Policy, Selection
from reconciler.model.values import Address
from reconciler.planning.approval import differences
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

OLD = project("old")
ABSENT = replace(OLD, state=State.ABSENT)
WEB = project()
DELETABLE = frozenset({"project"})
NEVER = Policy(deletable=DELETABLE)
GIT = replace(NEVER, prune=True)
TRUE = replace(NEVER, prune=True)
WAYS = [(GIT, ()), (TRUE, ()), (NEVER, (ABSENT,)), (GIT, (ABSENT,))]
"""The ways to delete the project, each by its policy and what the files declare."""
NAMES = ["prune-git", "prune-true", "absent", "absent-and-prune-git"]


def in_old(key: str, **parts: object) -> Resource:
    return export(key, parent="old", **parts)  # type: ignore[arg-type]


def live_old(*names: str) -> Live:
    """Return two projects, with exports in the second one."""
    exports = [live_export(f"e{n}", name, parent=2) for n, name in enumerate(names)]
    return live_of(live_project(), live_project(2, "Old"), *exports)


def plan_of(
    policy: Policy,
    declared: tuple[Resource, ...],
    base: Desired | None,
    *names: str,
    live: Live | None = None,
    **selection: tuple[str, ...],
) -> Plan:
    options = PlanOptions(selection=Selection(**selection), allow_replace=True)
    desired = desired_of(WEB, *declared)
    plan = planned(desired, live or live_old(*names), policy, base=base, options=options)
    assert "project.old:delete" in [change.id for change in plan.effective]
    return plan


def rules(plan: Plan) -> list[str]:
    return [refusal.rule for refusal in plan.refusals]


@pytest.mark.parametrize(("policy", "declared"), WAYS, ids=NAMES)
def test_plan_d1_an_unmanaged_object_keeps_a_project_that_is_pruned(
    policy: Policy, declared: tuple[Resource, ...]
) -> None:
    """`state: absent` deletes it, too, and names all."""
    names = [f"Hand-made {n}" for n in range(9)]
    plan = plan_of(policy, declared, desired_of(WEB, OLD), *names)
    if not declared:
        assert rules(plan) == ["unmanaged-inside"]
        return
    assert rules(plan) == []
    lost = plan.effective[-1].consequences[0].message
    assert all(f"'{name}'" in lost for name in names)


def test_deletions_by_their_project_cost_no_calls() -> None:
    base = desired_of(WEB, OLD, *(in_old(f"e{n}") for n in range(9)))
    with_nine = plan_of(GIT, (), base, *(f"E{n}" for n in range(9)))
    empty = plan_of(GIT, (), desired_of(WEB, OLD))
    assert calls_of(with_nine, KINDS) == calls_of(empty, KINDS) == 4


def test_the_address_of_an_unmanaged_object_is_in_the_violation() -> None:
    (refusal,) = plan_of(GIT, (), desired_of(WEB, OLD), "A", "B").refusals
    assert "'A' (id e0)" in refusal.message
    assert "'B' (id e1)" in refusal.message
    assert refusal.addresses == (Address("project", "old"),)


def test_a_saved_deletion_of_a_project_needs_every_deletion_in_it() -> None:
    """A saved plan does not delete a project with an export that was modified."""
    base = desired_of(WEB, OLD, in_old("a"), in_old("b"))
    saved, modified = plan_of(GIT, (), base, "A", "B"), live_old("A", "B")
    (a, b), web = modified.of("batch_export"), modified.of("project")
    live = live_of(*web, replace(a, body={**a.body, "interval": "day"}), b)
    now = plan_of(GIT, (), base, live=live)
    assert differences(saved, now, live=live, kinds=KINDS, mask=str) == (
        'batch_export.a: live value of interval is "day" now, the saved plan has "hour"',
    )
