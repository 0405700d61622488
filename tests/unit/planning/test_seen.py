"""What a plan records of a live object, `ignore_changes` and staleness."""

from __future__ import annotations

import pytest

from reconciler.model.kind import Dialect
from reconciler.model.plan import Plan
from reconciler.model.resource import Lifecycle, State
from reconciler.model.settings import PlanOptions
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    stale_changes,
)

PREFIX_IGNORED = Lifecycle(ignore_changes=("destination.config.prefix",))


def stale(plan: Plan, *, prefix: str, **body: object) -> list[str]:
    live = live_of(live_project(), live_export(destination=s3(prefix=prefix), **body))
    return stale_changes(plan, live)


def test_an_ignored_field_does_not_make_an_update_stale() -> None:
    desired = desired_of(project(), export(lifecycle=PREFIX_IGNORED, interval="day"))
    plan = planned(desired, live_of(live_project(), live_export()))
    assert stale(plan, prefix="other/") == []
    assert stale(plan, prefix="other/", interval="week") != []


def test_an_ignored_object_covers_the_fields_below_it() -> None:
    life = Lifecycle(ignore_changes=("destination",))
    desired = desired_of(project(), export(lifecycle=life, interval="day"))
    plan = planned(desired, live_of(live_project(), live_export()))
    assert stale(plan, prefix="other/") == []


def test_an_ignored_field_does_not_make_a_deletion_stale() -> None:
    desired = desired_of(project(), export(lifecycle=PREFIX_IGNORED, state=State.ABSENT))
    plan = planned(desired, live_of(live_project(), live_export()))
    assert stale(plan, prefix="other/") == []
    assert stale(plan, prefix="p/", interval="day") != []


@pytest.mark.parametrize("managed", [{"end_at": None}, {}])
def test_an_ignored_field_makes_a_replacement_stale_since_its_live_value_is_copied(
    managed: dict[str, None],
) -> None:
    life = Lifecycle(ignore_changes=("end_at",))
    end = "2030-01-01T00:00:00Z"
    desired = desired_of(project(), export(lifecycle=life, model="persons", **managed))
    live = live_of(live_project(), live_export(end_at=end), dialect=Dialect.V2026)
    plan = planned(desired, live, options=PlanOptions(allow_replace=True))
    assert [change.action.value for change in plan.effective] == ["replace"]
    assert stale(plan, prefix="p/", end_at="2031-01-01T00:00:00Z") != []
