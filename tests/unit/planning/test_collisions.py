"""A plan notes each place that several exports write to."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.plan import Note, Plan
from reconciler.model.resource import State
from reconciler.model.values import SecretRef
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

WEB = project()


def noted(plan: Plan) -> list[Note]:
    return [note for note in plan.notes if note.code == "same-place"]


def of_type(tag: str, **config: Any) -> dict[str, Any]:
    return {"type": tag, "config": config}


def plan_of(*destinations: Any) -> Plan:
    exports = [
        export(f"x{number}", name=f"X{number}", destination=destination)
        for number, destination in enumerate(destinations)
    ]
    return planned(desired_of(WEB, *exports), live_of(live_project()))


@pytest.mark.parametrize(
    ("one", "other", "is_noted"),
    [
        (s3(), s3(), True),
        (s3(), s3(region="other"), True),
        (s3(), s3(prefix="q/"), False),
        (s3(), {**s3(), "type": "AwsS3"}, True),
        (s3(), s3(endpoint_url="https://minio.example"), False),
        (s3(bucket_name=SecretRef.of("env", "B")), s3(bucket_name=SecretRef.of("env", "B")), True),
        (s3(bucket_name=SecretRef.of("env", "B")), s3(bucket_name=SecretRef.of("env", "C")), False),
        (
            of_type("Postgres", host="h", database="d", schema="public", table_name="t"),
            of_type("Postgres", host="h", database="d", table_name="t"),
            True,
        ),
        (
            of_type("Postgres", host="h", database="d", table_name="t"),
            of_type("Postgres", host="h", database="d", table_name="u"),
            False,
        ),
        # One address may take data for many places.
        (
            of_type("HTTP", url="https://h.example", token="a"),
            of_type("HTTP", url="https://h.example", token="b"),
            False,
        ),
        (of_type("NoOp"), of_type("NoOp"), False),
    ],
)
def test_two_exports_that_write_to_one_place(one: Any, other: Any, *, is_noted: bool) -> None:
    assert bool(noted(plan_of(one, other))) is is_noted


def test_a_place_is_noted_once_with_its_parts() -> None:
    (note,) = noted(plan_of(s3(), s3(), s3()))
    assert note.message == (
        "batch_export.x0, batch_export.x1, batch_export.x2 write to the same place (bucket 'b', "
        "prefix 'p/'): files may be overwritten, and a table gets the rows of all"
    )


def test_every_plan_has_the_note_also_without_changes() -> None:
    live = live_of(live_project(), live_export("e1", "A"), live_export("e2", "B"))
    plan = planned(desired_of(WEB, export("a", name="A"), export("b", name="B")), live)
    assert plan.empty
    assert len(noted(plan)) == 1


def test_unmanaged_exports_count_beside_a_managed_one() -> None:
    live = live_of(live_project(), live_export("e1", "A"), live_export("e2", "B"))
    (note,) = noted(planned(desired_of(WEB, export("a", name="A")), live))
    assert "batch_export.a, batch_export.id:e2 write to" in note.message
    assert noted(planned(desired_of(WEB), live)) == []


def test_fields_that_are_not_declared_count_as_live() -> None:
    live = live_of(live_project(), live_export("e1", "A", destination=s3(prefix="live/")))
    partial = {"type": "S3", "config": {"bucket_name": "b", "region": "r"}}
    exports = export("a", name="A", destination=partial), export("b", name="B", destination=s3())
    assert noted(planned(desired_of(WEB, *exports), live)) == []
    same = export("b", name="B", destination=s3(prefix="live/"))
    assert len(noted(planned(desired_of(WEB, exports[0], same), live))) == 1


def test_an_export_that_is_deleted_does_not_count() -> None:
    live = live_of(live_project(), live_export("e1", "A"))
    gone = export("a", name="A", state=State.ABSENT)
    assert noted(planned(desired_of(WEB, gone, export("b", name="B")), live)) == []


def test_model_mutation_at_most_five_exports_and_twenty_places_are_listed() -> None:
    """The places are in the order of their exports."""
    pairs = [s3(prefix=f"{number:02}/") for number in range(11, 32)]
    exports = [
        export(f"{key}{number}", name=f"{key} {number}", destination=pair)
        for number, pair in enumerate(pairs, start=11)
        for key in ("a", "b")
    ]
    notes = noted(planned(desired_of(WEB, *exports), live_of(live_project())))
    wanted = [f"batch_export.a{number}, batch_export.b{number} " for number in range(11, 31)]
    assert [note.message.partition("write")[0] for note in notes] == wanted
    (six,) = noted(plan_of(*[s3()] * 6))
    assert "batch_export.x4 and 1 more write to the same place" in six.message
