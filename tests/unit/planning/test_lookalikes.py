"""Unmanaged objects that look like a planned create are pointed out, and never used."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.settings import Policy
from reconciler.model.values import Address
from reconciler.planning.make import make_plan
from reconciler.planning.select import select
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
    s3,
    with_secrets,
)

WEB = project()
LAKE = Address("batch_export", "lake")
OTHER_PLACE: dict[str, Any] = {"destination": s3(prefix="other/")}
OTHER_DATA: dict[str, Any] = {"model": "persons"}


def look_alikes(plan: Plan) -> dict[str, str]:
    """Return the messages by what they are about."""
    return {str(note.about): note.message for note in plan.notes if note.code == "look-alike"}


@pytest.mark.parametrize(
    ("live", "alike"),
    [
        (live_export("e9", "Hand-made", **OTHER_DATA), None),
        (live_export("e9", parent=2, **OTHER_PLACE), "'Lake' in project 'Lab' (id e9, same name)"),
        (live_export("e9", "LAKE", **OTHER_PLACE), "'LAKE' (id e9, same name)"),
        (live_export("e9", "Hand-made", **OTHER_PLACE), None),
    ],
)
@pytest.mark.parametrize("has_base", [False, True])
def test_terraform_2_an_export_that_looks_like_a_planned_create(
    live: LiveObject, alike: str | None, *, has_base: bool
) -> None:
    desired = desired_of(WEB, export(destination=with_secrets()))
    state = live_of(live_project(1), live_project(2, "Lab"), live)
    plan = planned(desired, state, base=desired_of(WEB) if has_base else None)
    assert [str(change.address) for change in plan.effective] == ["batch_export.lake"]
    way = "pin it: `id: e9`"
    if live.parent_id == "1":
        way = f"set `lifecycle: {{renamed_from: ['{live.name}']}}`"
    message = f"unmanaged: {alike}. If it is this one, {way}"
    assert look_alikes(plan) == ({str(LAKE): message} if alike is not None else {})


def test_managed_and_ignored_objects_are_not_pointed_out() -> None:
    desired = desired_of(WEB, export(), export("other", name="Other"))
    live = live_of(live_project(1), live_export("e1", "Other"))
    assert look_alikes(planned(desired, live)) == {}
    live = live_of(live_project(1), live_export("e1", "System"))
    assert look_alikes(planned(desired_of(WEB, export()), live, Policy(ignore=("Sys*",)))) == {}


@pytest.mark.parametrize("count", [200, 201])
def test_model_mutation_names_are_compared_with_at_most_200_objects(count: int) -> None:
    destination = {"type": "NoOp", "config": {}}
    live = [live_export(f"id{n}", f"Other {n}", destination=destination) for n in range(count - 1)]
    similar = live_export("e9", "Lakee", destination=destination)
    own = export(destination=destination)
    notes = look_alikes(planned(desired_of(WEB, own), live_of(live_project(1), *live, similar)))
    assert ("similar name" in str(notes)) is (count == 200)


def test_at_most_three_objects_and_twenty_creates_are_listed() -> None:
    exports = [export(f"e{number}", name=f"Lake {number}") for number in range(30)]
    live = [
        live_export(f"id{number:02}-{name}", f"{name} {number}", **OTHER_DATA)
        for number in range(30)
        for name in ("LAKE", "lake", "laKe", "lAKE", "LaKe")
    ]
    notes = look_alikes(planned(desired_of(WEB, *exports), live_of(live_project(1), *live)))
    assert len(notes) == 21
    way = "set `lifecycle: {renamed_from: ['LAKE 0']}`"
    assert f"and 2 more. If it is one of these, {way}" in notes["batch_export.e0"]
    assert notes["None"] == "unmanaged objects look like 10 more planned creates"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("web", "same name"),
        ("Web-shop", "same name"),
        ("\uff37eb sho\uff50", "same name"),
        ("Web shopp", "similar name"),
        ("Lab", None),
    ],
)
def test_terraform_2_a_project_that_looks_like_a_planned_create(
    name: str, reason: str | None
) -> None:
    wanted = "Web" if name == "web" else "Web Shop"
    desired = desired_of(project(name=wanted, timezone="Europe/Berlin"))
    notes = look_alikes(planned(desired, live_of(live_project(7, name))))
    assert notes == (
        {}
        if reason is None
        else {
            "project.web": f"unmanaged: '{name}' (id 7, {reason}). "
            f"If it is this one, set `lifecycle: {{renamed_from: ['{name}']}}`"
        }
    )


def test_names_that_differ_in_a_number_are_not_similar() -> None:
    desired = desired_of(project(name="Team number 4"))
    assert look_alikes(planned(desired, live_of(live_project(7, "Team number 3")))) == {}


def test_plan_i4_an_id_is_advised_for_its_environment_only() -> None:
    desired = desired_of(WEB, export())
    live = live_of(live_project(1), live_project(2, "Lab"), live_export(parent=2))
    context = replace(plan_context(), has_environments=True)
    plan = make_plan(select(desired, live, Policy(), KINDS, context=context))
    assert "pin it: `overrides: {staging: {id: e1}}`" in look_alikes(plan)[str(LAKE)]
