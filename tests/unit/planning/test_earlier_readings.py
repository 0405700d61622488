"""What was decided from an earlier reading counts only for what a later one does not touch."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.model.kind import Action
from reconciler.model.live import LiveObject
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, Lifecycle
from reconciler.planning.details import DetailsNotRead
from reconciler.planning.planner import make_plan
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    plan_context,
    project,
    s3,
)

DESIRED = desired_of(project(timezone="Europe/Berlin"), export(interval="day"))
BASE = desired_of(project(), export(interval="hour"))
FULL = live_project()
SHORT = replace(FULL, complete=False)
EXPORT = live_export()
READINGS = {
    "in full": (FULL, EXPORT),
    "short": (SHORT, EXPORT),
    "other settings": (replace(FULL, body={**FULL.body, "timezone": "Europe/Berlin"}), EXPORT),
    "other name": (replace(FULL, name="Web 2", body={**FULL.body, "name": "Web 2"}), EXPORT),
    "without project": (),
    "without export": (FULL,),
    "as configured": (FULL, replace(EXPORT, body={**EXPORT.body, "interval": "day"})),
    "paused": (FULL, replace(EXPORT, body={**EXPORT.body, "paused": True})),
}


@pytest.mark.parametrize("after", READINGS)
@pytest.mark.parametrize("before", READINGS)
@pytest.mark.parametrize("base", [None, BASE], ids=["no base", "base"])
def test_a_plan_after_an_earlier_reading_is_that_without_it(
    before: str, after: str, base: Desired | None
) -> None:
    context = plan_context(base=base)
    made = [
        make_plan(DESIRED, live_of(*READINGS[name]), Policy(), KINDS, context=context)
        for name in (before, after, before)
    ]
    for plan, name in zip(made, (before, after, before), strict=True):
        alone = plan_context(base=base)
        assert plan == make_plan(DESIRED, live_of(*READINGS[name]), Policy(), KINDS, context=alone)


@pytest.mark.parametrize("names", [("Legacy", "Other"), ("Other", "Legacy")])
def test_a_plan_of_another_policy_is_that_without_the_first_one(names: tuple[str, ...]) -> None:
    renamed = export(lifecycle=Lifecycle(renamed_from=("Legacy",)))
    new = export("new", sql_query="SELECT event FROM events", destination=s3(bucket_name="c"))
    live = live_of(FULL, live_export(name="Legacy"))
    context = plan_context()
    for policy in (Policy(ignore=(name,)) for name in names):
        plan, alone = (
            make_plan(desired_of(project(), renamed, new), live, policy, KINDS, context=given)
            for given in (context, plan_context())
        )
        # Whether its query has an entry of its own depends on what else is live.
        assert plan == alone


def test_details_that_changes_depend_on_are_asked_for() -> None:
    def plan(*objects: LiveObject, needs_details: bool = True) -> list[Action]:
        context = replace(plan_context(), needs_details=needs_details)
        made = make_plan(DESIRED, live_of(*objects), Policy(), KINDS, context=context)
        return [change.action for change in made.changes]

    with pytest.raises(DetailsNotRead) as raised:
        plan(SHORT, EXPORT)
    assert raised.value.wanted == {SHORT.identity}
    updates = [Action.UPDATE, Action.UPDATE]
    assert plan(FULL, EXPORT) == plan(SHORT, EXPORT, needs_details=False) == updates
