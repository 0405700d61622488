"""What would double an object is refused; what looks like it, or writes beside it, is noted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.kind import SINCE_2026, Action, Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note, Plan, Refusal
from reconciler.model.resource import Lifecycle, Resource, State
from reconciler.model.settings import Policy
from reconciler.model.values import Address, SecretRef
from reconciler.planning.make import make_plan
from reconciler.planning.select import select
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    inventory_of,
    live_export,
    live_of,
    live_project,
    plan_context,
    planned,
    project,
    s3,
)

WEB = project()
LAKE = Address("batch_export", "lake")
BEFORE = desired_of(WEB, export())
PRUNE, IGNORING = Policy(prune=True), Policy(ignore=("Tw*",))


def of_type(tag: str, integration: int | None = None, **config: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"type": tag, "config": config}
    return {"destination": body if integration is None else {**body, "integration": integration}}


def postgres(**config: Any) -> dict[str, Any]:
    return of_type("Postgres", **{"host": "h", "database": "d", "table_name": "t", **config})


def http(url: str, **config: Any) -> dict[str, Any]:
    return of_type("HTTP", url=url, **config)


def bucket(prefix: str, url: str | None = None) -> dict[str, Any]:
    return of_type("S3", bucket_name="b", prefix=prefix, endpoint_url=url)


BY_7 = of_type("Postgres", 7, database="d")


def refused(plan: Plan, rule: str = "possible-duplicate") -> list[Refusal]:
    return [refusal for refusal in plan.refusals if refusal.rule == rule]


def doubled(*resources: Resource, live: LiveObject, base: Any = BEFORE, **policy: Any) -> list[str]:
    """Return the ids of the objects that a plan would double."""
    state = live_of(live_project(), live)
    plan = planned(desired_of(WEB, *resources), state, Policy(**policy), base=base)
    return [item.address.key for refusal in refused(plan) for item in refusal.objects]


@pytest.mark.parametrize(
    ("live", "is_doubled"),
    [
        pytest.param({}, True, id="renamed"),
        pytest.param({"end_at": "2026-05-31T00:00:00Z"}, False, id="ended"),
        pytest.param({"end_at": "2026-07-01T00:00:00Z"}, True, id="ends later"),
        pytest.param({"sql_query": "select 1"}, False, id="another query"),
        pytest.param({"destination": s3(region="q")}, True, id="another region"),
        pytest.param({"destination": {**s3(), "type": "AwsS3"}}, False, id="another type"),
    ],
)
def test_plan_i1_an_export_that_was_renamed_in_the_service(
    live: dict[str, Any], *, is_doubled: bool
) -> None:
    twin = live_export("e9", "PG (do not touch)", **live)
    expected = ["id:e9"] * is_doubled
    assert doubled(export(), live=twin) == expected
    assert doubled(export(), live=twin, base=None) == expected
    assert doubled(export(), live=twin, ignore=("PG*",)) == expected


@pytest.mark.parametrize(
    ("wanted", "live", "is_doubled"),
    [
        (postgres(), postgres(schema="public", port=5432), True),
        (postgres(), postgres(port="5432"), True),
        (postgres(), postgres(port=5433), False),
        (postgres(host=None), postgres(host=None), False),
        (BY_7, BY_7, True),
        (BY_7, of_type("Postgres", 8, database="d"), False),
        (of_type("AwsS3", 7, bucket_name="b"), of_type("AwsS3", 8, bucket_name="b"), True),
        (http("https://h"), http("https://h"), False),
        (http("https://h"), http("https://h", include_events=["a"]), False),
        # Texts for the same host or folder.
        (postgres(host="Db.Example"), postgres(host="db.example."), True),
        (postgres(host="db.example"), postgres(host="db.example.com"), False),
        (postgres(database="D"), postgres(database="d"), False),
        (http("HTTPS://H./p"), http("https://h/p"), False),
        (http("https://h/P"), http("https://h/p"), False),
        (bucket("/p/"), bucket("p"), True),
        (bucket(""), bucket("/"), True),
        (bucket("p"), bucket("pp"), False),
        (bucket("p/q"), bucket("q"), False),
        (bucket("Q"), bucket("q"), False),
        (bucket("p", "https://Minio.:9000/"), bucket("p", "https://minio:9000"), True),
        (bucket("p", "https://minio:9001"), bucket("p", "https://minio:9000"), False),
        (of_type("NoOp"), of_type("NoOp"), False),
        (of_type("Workflows", hog_function_id="1"),) * 2 + (False,),
    ],
)
def test_plan_i1_places(wanted: dict[str, Any], live: dict[str, Any], *, is_doubled: bool) -> None:
    twin, own = live_export("e9", "Renamed", **live), export(**wanted)
    assert bool(doubled(own, live=twin)) is is_doubled


@pytest.mark.parametrize(
    ("name", "shown"), [("it's", '["it\'s"]'), ("a\tb", '["a\\tb"]'), ("${env:X}", "['$${env:X}']")]
)
def test_the_way_on_is_a_yaml_scalar_that_means_the_name(name: str, shown: str) -> None:
    live = live_of(live_project(), live_export("e9", name))
    (refusal,) = refused(planned(desired_of(WEB, export()), live, base=BEFORE))
    assert f"renamed_from: {shown}" in (refusal.allow or "")


@pytest.mark.parametrize(
    ("beside", "is_refused"),
    [("Twin", False), ("batch_export.id:e9", False), ("Tw*", True), ("twin", True)],
)
def test_an_object_of_beside_is_intended(beside: str, *, is_refused: bool) -> None:
    own = export(lifecycle=Lifecycle(beside=(beside,)))
    assert bool(doubled(own, live=live_export("e9", "Twin"))) is is_refused


@pytest.mark.parametrize("beside", [(), ("batch_export.id:e1",)])
def test_model_1007_the_object_that_was_applied_is_not_doubled(beside: tuple[str, ...]) -> None:
    """A resource left `ignore`: its object is not found again."""
    to = http("https://h")
    record = inventory_of(desired_of(WEB, export(**to)), live_of(live_project(), live_export(**to)))
    own = export(name="Pond", lifecycle=Lifecycle(beside=beside), **to)
    live = live_of(live_project(), live_export(**to))
    plan = planned(desired_of(WEB, own), live, Policy(ignore=("Lake",)), base=record)
    is_said = ["which was applied as this resource" in item.message for item in refused(plan)]
    assert is_said == [True] * (not beside)


def test_plan_i1_a_project_that_was_renamed_in_the_service() -> None:
    live = live_of(live_project(2, "Web (prod)"), live_export(parent=2))
    (refusal,) = refused(planned(desired_of(WEB, export()), live, base=BEFORE))
    assert refusal.addresses == (WEB.address, LAKE)
    beside = replace(WEB, lifecycle=Lifecycle(beside=("Web (prod)",)))
    assert not refused(planned(desired_of(beside, export()), live, base=BEFORE))


@pytest.mark.parametrize("dialect", [None, *Dialect])
def test_model_f6_plan_i5_project_names_that_differ_only_in_case(dialect: Dialect | None) -> None:
    """The server refuses a second one, so the plan does."""
    new, other = project("a", name="New"), project("b", name="NEW")
    desired = desired_of(new, other, project("c", name="Else"), project(name="web"))
    live = live_of(live_project(), dialect=dialect)
    refusals = refused(planned(desired, live), "name-taken")
    is_refused = dialect in SINCE_2026
    assert [item.addresses for item in refusals] == [(other.address,), (WEB.address,)] * is_refused
    if is_refused:
        assert "project.a is created with the name 'New'" in refusals[0].message
        assert "attempt: [name-taken]" in (refusals[0].allow or "")
    assert not refused(planned(desired, live, Policy(attempt=("name-taken",))), "name-taken")


# Objects of another tool

MARKED = "Lake\n\n<!-- iac:batch-exports:events_to_s3 iac:hash:abc123 -->"
FORK = "Lake [iac:batch-exports:events_to_s3 iac:hash:abc123]"


@pytest.mark.parametrize("name", [MARKED, FORK])
def test_plan_i6_objects_of_another_tool_are_never_renamed_or_pruned(name: str) -> None:
    live = live_of(live_project(), live_export("e9", name, destination=s3(prefix="q/")))
    by_former = export(name="New", lifecycle=Lifecycle(renamed_from=(name.strip(),)))
    plan = planned(desired_of(WEB, by_former), live, PRUNE)
    assert [change.id for change in plan.effective] == ["batch_export.lake:create"]
    at_base = desired_of(WEB, export(name=name.strip()))
    recorded = planned(desired_of(WEB, export(name="New")), live, base=at_base)
    pinned = planned(desired_of(WEB, export(pinned_id="e9")), live)
    for plan in (recorded, pinned):
        assert [refusal.rule for refusal in plan.refusals] == ["posthog-definitions"]
    whole = planned(desired_of(WEB, export(name=name.strip(), destination=s3(prefix="q/"))), live)
    assert whole.empty
    removed = planned(desired_of(WEB), live, PRUNE, base=at_base)
    assert removed.empty
    assert [item.reason for item in removed.leaving] == ["also managed by posthog-definitions"]


@pytest.mark.parametrize("name", [MARKED, FORK])
def test_plan_i6_objects_of_another_tool_count_as_twins(name: str) -> None:
    assert doubled(export(), live=live_export("e9", name), base=None) == ["id:e9"]
    # A marker elsewhere in a name is part of the name.
    live = live_of(live_project(), live_export("e9", f"{name} !", destination=s3(prefix="q/")))
    former = desired_of(WEB, export(name=f"{name} !"))
    plan = planned(desired_of(WEB), live, PRUNE, base=former)
    assert [change.action for change in plan.effective] == [Action.DELETE]


# A plan notes each place that several exports write to


def noted(plan: Plan) -> list[Note]:
    return [note for note in plan.notes if note.code == "same-place"]


def plan_of(*destinations: Any) -> Plan:
    exports = [
        export(f"x{number}", name=f"X{number}", destination=destination)
        for number, destination in enumerate(destinations)
    ]
    return planned(desired_of(WEB, *exports), live_of(live_project()))


NO_OP = {"type": "NoOp", "config": {}}
BUCKET_B, BUCKET_C = (s3(bucket_name=SecretRef.of("env", name)) for name in "BC")


HTTP_A, HTTP_B = (http("https://h.example", token=token)["destination"] for token in "ab")


@pytest.mark.parametrize(
    ("one", "other", "is_noted"),
    [
        (s3(), s3(), True),
        (BUCKET_B, BUCKET_B, True),
        (BUCKET_B, BUCKET_C, False),
        # One address may take data for many places.
        (HTTP_A, HTTP_B, False),
        (NO_OP, NO_OP, False),
    ],
)
def test_two_exports_that_write_to_one_place(one: Any, other: Any, *, is_noted: bool) -> None:
    assert bool(noted(plan_of(one, other))) is is_noted


A, B = export("a"), export("b")
LIVE_A, LIVE_B, TWIN = live_export("e1", "A"), live_export("e2", "B"), live_export("e9", "Twin")
ELSEWHERE = live_export("e1", "A", destination=s3(prefix="live/"))
A_IN_PART = export("a", destination=of_type("S3", bucket_name="b", region="r")["destination"])
B_THERE = export("b", destination=s3(prefix="live/"))
B_BESIDE = export("b", lifecycle=Lifecycle(beside=("A",)))


@pytest.mark.parametrize(
    ("resources", "live", "who"),
    [
        pytest.param([A, B], [LIVE_A, LIVE_B], ["batch_export.b"], id="both live"),
        pytest.param([A, B_BESIDE], [LIVE_A, LIVE_B], [], id="intended"),
        pytest.param([A], [LIVE_A, LIVE_B], ["batch_export.id:e2"], id="an unmanaged one"),
        pytest.param([], [LIVE_A, LIVE_B], [], id="only unmanaged ones"),
        pytest.param([A], [ELSEWHERE, LIVE_B], ["batch_export.id:e2"], id="an update to it"),
        pytest.param([A], [ELSEWHERE, TWIN], ["batch_export.id:e9"], id="to an ignored one"),
        pytest.param([A_IN_PART, B], [ELSEWHERE], [], id="what is not declared counts as live"),
        pytest.param([A_IN_PART, B_THERE], [ELSEWHERE], ["batch_export.b"], id="the same place"),
        pytest.param([export("a", state=State.ABSENT), B], [LIVE_A], [], id="a deleted one"),
    ],
)
def test_exports_count_beside_a_managed_one(
    resources: list[Resource], live: list[LiveObject], who: list[str]
) -> None:
    plan = planned(desired_of(WEB, *resources), live_of(live_project(), *live), IGNORING)
    shown = [note.message.partition(" write to the same place")[0] for note in noted(plan)]
    assert shown == [f"batch_export.a, {name}" for name in who]
    assert not refused(plan)


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


# Unmanaged objects that look like a planned create are pointed out, and never used

OTHER_DATA: dict[str, Any] = {"model": "persons"}


def look_alikes(plan: Plan) -> dict[str, str]:
    """Return the messages by what they are about."""
    return {str(note.about): note.message for note in plan.notes if note.code == "look-alike"}


def test_terraform_2_an_export_in_another_case_looks_like_a_planned_create() -> None:
    live = live_of(live_project(1), live_export("e9", "LAKE", destination=s3(prefix="other/")))
    way = "set `lifecycle: {renamed_from: ['LAKE']}`"
    message = f"unmanaged: 'LAKE' (id e9, same name). If it is this one, {way}"
    assert look_alikes(planned(desired_of(WEB, export()), live)) == {str(LAKE): message}


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
    ("wanted", "name", "reason"),
    [
        ("Web", "web", "same name"),
        ("Web Shop", "Web-shop", "same name"),
        ("Web Shop", "\uff37eb sho\uff50", "same name"),
        ("Web Shop", "Web shopp", "similar name"),
        ("Web Shop", "Lab", None),
        ("Team number 4", "Team number 3", None),
    ],
)
def test_terraform_2_a_project_that_looks_like_a_planned_create(
    wanted: str, name: str, reason: str | None
) -> None:
    desired = desired_of(project(name=wanted, timezone="Europe/Berlin"))
    notes = look_alikes(planned(desired, live_of(live_project(7, name))))
    way = f"If it is this one, set `lifecycle: {{renamed_from: ['{name}']}}`"
    message = f"unmanaged: '{name}' (id 7, {reason}). {way}"
    assert notes == ({} if reason is None else {"project.web": message})


def test_plan_i4_an_id_is_advised_for_its_environment_only() -> None:
    desired = desired_of(WEB, export())
    live = live_of(live_project(1), live_project(2, "Lab"), live_export(parent=2))
    context = replace(plan_context(), has_environments=True)
    plan = make_plan(select(desired, live, Policy(), KINDS, context=context))
    assert "pin it: `overrides: {staging: {id: e1}}`" in look_alikes(plan)[str(LAKE)]
