"""What a plan carries for readers: names of parents, fields as the files write them, reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.files.loading import load
from reconciler.model.plan import Plan, Reason
from reconciler.model.resource import Lifecycle, ParentRef, Resource, State
from reconciler.model.values import Address
from tests.support.cli import write
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

WEB, LAB = project(), project("lab")


def parents(plan: Plan) -> dict[str, tuple[str | None, str | None]]:
    """Return the names of the parents, new and old, by change."""
    return {
        change.id: (change.old_parent_name, change.parent_name)
        for change in plan.changes
        if change.address.kind == "batch_export"
    }


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (ParentRef(key="web"), "Old name"),
        (ParentRef(id="1"), "Old name"),
        (ParentRef(name="Old name"), "Old name"),
        (None, None),
    ],
)
def test_the_name_of_a_parent_is_the_live_one(
    ref: ParentRef | None, name: str | None, state: State
) -> None:
    renamed = replace(WEB, lifecycle=Lifecycle(renamed_from=("Old name",)))
    resources = [replace(export(key, state=state), parent=ref) for key in ("lake", "sea")]
    live = live_of(live_project(1, "Old name"), live_export())
    plan = planned(desired_of(renamed, *resources), live)
    shown = {new for _, new in parents(plan).values()}
    # An export without a project is matched in any, so its object may have one.
    assert shown == ({name} if ref is not None else {None, "Old name"})


def _loaded(folder: Path, name: str) -> Resource:
    text = """
projects: {web: {name: Web}}
batch_exports:
  lake:
    project: web
    name: NAME
    interval: hour
    hogql_query: SELECT event FROM events
    destination: {type: NoOp, config: {}}
""".replace("NAME", name)
    settings = """
version: 1
vars: {stage: "${env:RECONCILER_VAR_STAGE}", plain: x, other: "${var:stage}"}
"""
    write(folder, {"reconciler.yaml": settings, "r.yaml": text})
    environ = {"RECONCILER_VAR_STAGE": "blue"}
    loaded = load(folder, environment=None, environ=environ)
    return loaded.desired.resources[Address("batch_export", "lake")]


def test_experience_23_a_field_has_the_name_that_the_file_writes(tmp_path: Path) -> None:
    resource = _loaded(tmp_path, "Lake")
    destination = {"type": "NoOp", "config": {}}
    live = live_of(live_project(), live_export(sql_query="select 1", destination=destination))
    (change,) = planned(desired_of(WEB, resource), live).effective
    assert [(field.path, field.written) for field in change.fields] == [
        (("sql_query",), ("hogql_query",))
    ]
    (change,) = planned(desired_of(WEB, resource), live_of(live_project())).effective
    assert {field.written for field in change.fields} == {(), ("hogql_query",)}


@pytest.mark.parametrize(
    ("live", "base", "reasons"),
    [
        ({"name": "Pond"}, None, [Reason.RENAMED]),
        ({"name": "Pond"}, "Pond", [Reason.RENAMED]),
        ({"name": "Pond", "interval": "day"}, None, [Reason.FIELDS_DIFFER]),
        ({"name": "Pond", "interval": "day"}, "Pond", [Reason.DRIFTED, Reason.CHANGED_IN_FILES]),
    ],
)
def test_a_rename_is_a_reason_only_if_nothing_else_changes(
    live: dict[str, str], base: str | None, reasons: list[Reason]
) -> None:
    renamed = export(lifecycle=Lifecycle(renamed_from=("Pond",)))
    former = desired_of(WEB, export(name=base)) if base is not None else None
    plan = planned(
        desired_of(WEB, renamed), live_of(live_project(), live_export(**live)), base=former
    )
    (change,) = plan.effective
    assert set(change.reasons) == set(reasons)
