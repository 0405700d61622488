"""What the options of a plan select, which are refused, and which objects are read in full."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.errors import BadUsage
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Lifecycle, Resource, State
from reconciler.model.settings import PlanOptions, Policy, Selection
from reconciler.planning.select import needs_of, select, short_forms
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    plan_context,
    planned,
    project,
    with_secrets,
)

DESIRED = desired_of(
    project(),
    project("app", name="The app"),
    export("lake", name="New lake", destination=with_secrets(), pinned_id="e1", interval="day"),
    export("sea", parent="app", interval="day"),
)
LIVE = live_of(
    live_project(1),
    live_project(2, "The app"),
    live_project(3, "Other"),
    live_export("e1", "Old lake"),
    live_export("e2", "Sea", parent=2),
    live_export("e3", "Hand-made"),
    live_export("e4", "Ignored"),
)


def plan_of(policy: Policy | None = None, rotate: tuple[str, ...] = (), **selection: Any) -> Plan:
    options = PlanOptions(rotate=rotate, selection=Selection(**selection))
    return planned(DESIRED, LIVE, policy, options=options)


def changed(plan: Plan) -> set[str]:
    return {str(change.address) for change in plan.effective}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"targets": ("lake", "nope*")}, r"nothing matches 'nope\*'"),
        ({"parents": ("lake",)}, r"nothing matches 'lake' \(--project\)"),
        ({"parents": ("Other",)}, "select no resource: --project Other"),
        ({"excludes": ("*",)}, r"select no resource: --exclude \*"),
        ({"targets": ("lake,e3",)}, "is unmanaged"),
        ({"targets": ("Ignored",)}, "is ignored by the policy"),
        ({"rotate": ("Hand-made",)}, "nothing matches 'Hand-made'"),
        ({"rotate": ("sea",)}, "batch_export.sea: no secret to send again"),
        ({"rotate": ("lake,sea",)}, "batch_export.sea: no secret"),
    ],
)
def test_experience_1_an_option_that_selects_nothing_is_bad_usage(
    selection: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(BadUsage, match=message):
        plan_of(Policy(ignore=("Ignored",)), **selection)


@pytest.mark.parametrize("name", ["*", "e1", "Old lake"])
def test_experience_1_secrets_are_sent_again_by_any_name(name: str) -> None:
    plan = plan_of(rotate=(name,))
    assert changed(plan) == {"batch_export.lake", "batch_export.sea"}
    rotated = [str(change.address) for change in plan.effective if change.secrets]
    assert rotated == ["batch_export.lake"]


def test_a_rotation_of_all_secrets_may_be_of_none() -> None:
    options = PlanOptions(rotate=("*",))
    assert planned(desired_of(), live_of(), options=options).empty


def test_a_parent_that_must_be_created_cannot_be_excluded() -> None:
    desired = desired_of(project(), export())
    selection = Selection(excludes=("project.web",))
    with pytest.raises(BadUsage, match=r"project.web is excluded, but must be created"):
        planned(desired, live_of(), options=PlanOptions(selection=selection))


# Which objects a plan needs in full, of which only the short form of a list is known


def short(identity: int = 1, name: str = "Web") -> LiveObject:
    """Return a project as a list shows it."""
    return replace(live_project(identity, name), complete=False)


BERLIN, URLS = project(timezone="Europe/Berlin"), project(app_urls=[])
APP_URLS = project("app", app_urls=[])
ABSENT = replace(project(), state=State.ABSENT)
PINNED = replace(project(name="Shop"), pinned_id="1")
MOVED = replace(export(lifecycle=Lifecycle(allow_replace=True)), pinned_id="e1")
SHORT, SHORT_APP, SHORT_SHOP = short(), short(2, "App"), short(3, "Shop")
THREE, WEB_AND_APP = [SHORT, SHORT_APP, SHORT_SHOP], desired_of(project(), project("app"))
LAKE, IN_APP = live_export(), live_export(parent=2)
TARGET = Selection(targets=("project.web",))


@pytest.mark.parametrize(
    ("resources", "live", "parts", "expected"),
    [
        pytest.param([], [SHORT], {}, "", id="nothing"),
        pytest.param([project(timezone="UTC")], [SHORT], {}, "", id="fields of the list"),
        pytest.param([project(), export()], [SHORT, LAKE], {}, "", id="the same of an export"),
        pytest.param([project(surveys_opt_in=None)], [SHORT], {}, "1", id="a field, reset"),
        pytest.param([URLS], [SHORT], {}, "1", id="a field that no list shows"),
        pytest.param([URLS], [live_project()], {}, "", id="a complete object"),
        pytest.param([project()], [SHORT], {"base": desired_of(URLS)}, "1", id="an applied field"),
        pytest.param([project()], [SHORT], {"base": desired_of(project())}, "", id="no such field"),
        pytest.param([BERLIN], [SHORT], {}, "1", id="an update"),
        pytest.param([ABSENT], [SHORT], {}, "1", id="a deletion"),
        pytest.param([PINNED], [SHORT], {}, "1", id="a pin"),
        pytest.param([project(), export()], [SHORT], {}, "1", id="the parent of a create"),
        pytest.param([project(), export(state=State.ABSENT)], [SHORT], {}, "", id="of no create"),
        pytest.param([project(), export(interval="day")], [SHORT, LAKE], {}, "", id="of an update"),
        # It may be pending deletion, and then its name is free.
        pytest.param([project(name="WEB")], [SHORT], {}, "1", id="a namesake of a new object"),
        pytest.param([project(), MOVED], [SHORT, SHORT_APP, IN_APP], {}, "12", id="a move"),
        pytest.param([project()], THREE, {"base": WEB_AND_APP}, "2", id="what is pruned"),
        pytest.param([URLS, APP_URLS], [SHORT, SHORT_APP], {"of": TARGET}, "1", id="a selection"),
    ],
)
def test_objects_that_are_needed_in_full(
    resources: list[Resource], live: list[LiveObject], parts: dict[str, Any], expected: str
) -> None:
    desired, state = desired_of(*resources), live_of(*live)
    options = PlanOptions(selection=parts.get("of", Selection()))
    context = plan_context(options, parts.get("base"), state, desired)
    found = needs_of(select(desired, state, Policy(prune=True), KINDS, context=context)).objects
    assert found == {("project", number) for number in expected}


def test_short_forms_are_the_objects_that_are_not_complete() -> None:
    live = live_of(short(), live_project(2, "App"), live_export())
    assert short_forms(live) == {("project", "1"): short()}
