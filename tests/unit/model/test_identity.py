"""What is in the digest of a change, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.kind import Action, Dialect
from reconciler.model.plan import (
    Change,
    Consequence,
    FieldChange,
    NewPlace,
    Note,
    Novelty,
    Origin,
    PlanSource,
    Reason,
    RecentRun,
    Refusal,
    SecretNote,
    SecretUse,
    Severity,
    digest_of,
)
from reconciler.model.resource import Desired, ParentRef
from reconciler.model.values import MISSING, Address, SecretRef
from tests.support.worlds import Live, planned, worlds

SOURCE = PlanSource("staging", "org", "https://eu.example.com", "1.0")
REF = SecretRef.of("env", "KEY")
FIELD = FieldChange(("interval",), "hour", "day")
SECRET = SecretNote(("destination", "config", "key"), REF, SecretUse.NEEDED)
RULE = Consequence("interval-changed", Severity.WARNING, "fewer files")
UPDATE = Change(
    Address("batch_export", "lake"),
    Action.UPDATE,
    "Lake",
    live_id="e1",
    parent=ParentRef(key="web"),
    parent_id="1",
    fields=(FIELD, FieldChange(("end_at",), None, "2027-01-01T00:00:00Z")),
    body={"interval": "day", "destination": {"type": "S3", "config": {"key": REF}}},
    secrets=(SECRET,),
    reasons=(Reason.CHANGED_IN_FILES,),
    consequences=(RULE, Consequence("end-changed", Severity.INFO, "ends")),
    depends_on=("project.web:update", "batch_export.lake:pause"),
    seen={"interval": "hour", "name": "Lake"},
    at=Mark("all.yaml", 3),
)
CREATE = replace(UPDATE, action=Action.CREATE, live_id=None, seen=None, after_create={"x": 1})
DELETE = replace(
    UPDATE,
    action=Action.DELETE,
    fields=(FieldChange(("interval",), "hour", MISSING),),
    body=None,
    secrets=(),
    inside=("e1", "e2"),
)
CHANGES = {"update": UPDATE, "create": CREATE, "delete": DELETE}


def digest(change: Change, **source: Any) -> str:
    return digest_of(change, replace(SOURCE, **source))


INSIDE = [
    ("update", {"address": Address("batch_export", "sea")}),
    ("update", {"address": Address("project", "lake")}),
    ("update", {"action": Action.PAUSE}),
    ("update", {"live_id": "e2"}),
    ("update", {"fields": (FIELD,)}),
    ("update", {"fields": (replace(FIELD, after="week"), *UPDATE.fields[1:])}),
    ("update", {"fields": (replace(FIELD, after=MISSING), *UPDATE.fields[1:])}),
    ("update", {"fields": (replace(FIELD, path=("schedule",)), *UPDATE.fields[1:])}),
    ("update", {"fields": (replace(FIELD, secret=True), *UPDATE.fields[1:])}),
    ("update", {"body": {"interval": "day"}}),
    ("update", {"body": {**(UPDATE.body or {}), "destination": {"config": {"key": str(REF)}}}}),
    ("update", {"after_create": {"x": 1}}),
    ("update", {"secrets": ()}),
    ("update", {"secrets": (replace(SECRET, use=SecretUse.ROTATE),)}),
    ("update", {"secrets": (replace(SECRET, ref=SecretRef.of("env", "OTHER")),)}),
    ("update", {"consequences": (RULE,)}),
    ("update", {"consequences": (replace(RULE, severity=Severity.DANGER),)}),
    ("update", {"depends_on": ("project.web:update",)}),
    ("update", {"seen": {"interval": "week", "name": "Lake"}}),
    *((name, {"name": "Sea"}) for name in CHANGES),
    ("update", {"fields": (replace(FIELD, before="week"), *UPDATE.fields[1:])}),
    ("delete", {"fields": (FieldChange(("interval",), "week", MISSING),)}),
    ("create", {"parent_id": "2"}),
    ("create", {"parent_id": None}),
    ("create", {"after_create": None}),
    ("delete", {"inside": ("e1", "e2", "e3")}),
    ("delete", {"seen": {"interval": "hour", "name": "Lake", "paused": True}}),
]
OUTSIDE = [
    ("update", {"reasons": (Reason.DRIFTED,)}),
    ("update", {"at": None}),
    ("update", {"runs": (RecentRun("Failed", "2026-06-01T11:00:00Z"),)}),
    ("update", {"parent_name": "Web", "old_parent_name": "App"}),
    ("update", {"reach": ("s3://b",), "new": (NewPlace(Novelty.BUCKET, "s3://b", "s3://b"),)}),
    ("update", {"parent": ParentRef(id="1")}),
    ("update", {"integrations": {"7": "lake (7)"}}),
    ("update", {"fields": tuple(reversed(UPDATE.fields))}),
    ("update", {"fields": tuple(replace(entry, origin=Origin.LIVE) for entry in UPDATE.fields)}),
    ("update", {"depends_on": tuple(reversed(UPDATE.depends_on))}),
    ("update", {"consequences": tuple(reversed(UPDATE.consequences))}),
    ("update", {"consequences": (replace(RULE, message="other words"), UPDATE.consequences[1])}),
    ("update", {"secrets": (SECRET, SecretNote(("other",), REF, SecretUse.UNREADABLE))}),
    ("delete", {"inside": ("e2", "e1")}),
]


@pytest.mark.parametrize(
    ("name", "parts", "is_inside"),
    [*((*row, True) for row in INSIDE), *((*row, False) for row in OUTSIDE)],
)
def test_apply_a10_what_a_change_does_and_shows_is_in_its_digest(
    name: str, parts: dict[str, Any], is_inside: bool
) -> None:
    """Wording, order and places are not."""
    assert (digest(replace(CHANGES[name], **parts)) != digest(CHANGES[name])) is is_inside


def test_every_part_of_a_change_is_judged() -> None:
    judged = {part for _, parts in (*INSIDE, *OUTSIDE) for part in parts}
    # The former parent is that of the object, which `live_id` identifies.
    left_out = {"old_parent_id"}
    assert judged == set(Change.__struct_fields__) - left_out


def test_the_place_is_in_the_digest_and_the_tool_and_the_base_are_not() -> None:
    parts = ("environment", "organization", "base_url", "tool_version", "applied", "head")
    changed = [
        part for part in (*parts, "head_ref") if digest(UPDATE, **{part: "x"}) != digest(UPDATE)
    ]
    assert changed == ["environment", "organization", "base_url"]
    assert digest(UPDATE, dialect=Dialect.V2026) == digest(UPDATE)


def test_apply_a10_the_live_value_counts_as_a_plan_shows_it() -> None:
    """Also where it is compared in another form: readers see this one."""
    seen = {"sql_query": "SELECT 1"}
    one = replace(UPDATE, fields=(FieldChange(("sql_query",), "select 1", "select 2"),), seen=seen)
    two = replace(UPDATE, fields=(FieldChange(("sql_query",), "SELECT  1", "select 2"),), seen=seen)
    assert digest(one) != digest(two)


def test_a_create_is_identified_by_its_parent_and_name() -> None:
    waiting = replace(CREATE, parent_id=None)
    assert digest(replace(CREATE, name=" Lake ")) == digest(replace(CREATE, name="Lake"))
    assert digest(waiting) != digest(CREATE)
    assert digest(replace(waiting, parent=ParentRef(key="other"))) != digest(waiting)


@given(worlds(), st.randoms(use_true_random=False))
def test_the_plan_id_is_that_of_the_changes_in_any_order(
    world: tuple[Desired, Live], random: Any
) -> None:
    plan = planned(*world)
    changes = list(plan.changes)
    random.shuffle(changes)
    notes, refusals = (Note("a-note", "text"),), (Refusal("deny", "text"),)
    other = replace(
        plan, changes=tuple(changes), notes=notes, refusals=refusals, created_at="later"
    )
    assert other.plan_id == plan.plan_id
    if plan.effective:
        one = plan.effective[0]
        fewer = replace(plan, changes=tuple(change for change in plan.changes if change != one))
        assert fewer.plan_id != plan.plan_id
