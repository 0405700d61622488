"""A create is sent at most once: names before it, a search after an unknown outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.applying.check import SEARCH_PAUSES
from reconciler.model.event import Done, Event, Sending, Waiting
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Resource
from tests.conftest import StartService
from tests.support.emulator import DIALECTS
from tests.support.worlds import desired_of, export, planned, project, with_secrets
from tests.unit.applying.conftest import SEED, World

NO_OP = {"type": "NoOp", "config": {}}
LAKE = {"name": "Lake", "interval": "hour", "destination": NO_OP}
EXPORTS = "/api/projects/2/batch_exports/"
UNKNOWN = [
    {"fault": "drop", "when": "after"},
    {"fault": "error", "status": 500, "when": "after"},
    {"fault": "error", "status": 503, "when": "after"},
    {"fault": "html", "status": 502, "when": "after"},
    {"fault": "html", "status": 200, "when": "after"},
    {"fault": "truncate"},
    {"fault": "body", "text": ""},
    {"fault": "body", "value": {}},
    {"fault": "body", "value": None},
    {"fault": "body", "value": [], "status": 200},
    {"fault": "body", "merge": {"id": 1}},
    {"fault": "late", "seconds": 0.3},
    {"fault": "late", "seconds": 1.5},
    {"fault": "late", "seconds": 15, "status": 500},
    {"fault": "late", "seconds": 15, "answer_with": "drop"},
    {"fault": "hidden", "seconds": 12, "status": 503},
]


def lake(**spec: Any) -> Resource:
    return export(**{"destination": NO_OP, **spec})


def pond(key: str = "pond") -> Resource:
    return export(key, destination=NO_OP)


def plan(world: World, *resources: Resource) -> tuple[Plan, Live]:
    live = world.live()
    return planned(desired_of(*resources), live), live


@pytest.mark.parametrize("fault", UNKNOWN, ids=lambda fault: "-".join(map(str, fault.values())))
def test_f3_a_create_without_a_clear_answer_is_adopted_and_not_sent_again(
    world: World, fault: dict[str, Any]
) -> None:
    world.fail({"method": "POST"}, **fault)
    (done,) = world.apply(planned(desired_of(project()), world.live())).done
    assert (world.posts(), world.names()) == (1, ["Web"])
    assert (done.live_id, done.adopted) == ("2", True)


def test_f3_a_create_that_took_no_effect_is_reported_and_not_sent_again(world: World) -> None:
    world.fail({"method": "POST"}, fault="error", status=504)
    report = world.apply(planned(desired_of(project(), lake()), world.live()))
    (failed,) = report.failed
    assert failed.unknown
    assert failed.error.endswith(
        "outcome unknown, the request may have taken effect; "
        "no object of this name appeared in 30 s"
    )
    assert [skipped.because for skipped in report.skipped] == ["create of project.web failed"]
    assert (world.posts(), world.clock.pauses) == (1, list(SEARCH_PAUSES))


def test_f3_a_create_that_takes_effect_after_the_search_is_in_the_next_plan(world: World) -> None:
    world.fail({"method": "POST"}, fault="late", seconds=40)
    assert world.apply(planned(desired_of(project()), world.live())).failed
    world.running.advance(seconds=40)
    change, _ = plan(world, project())
    assert change.empty
    assert world.names() == ["Web"]


def test_f3_all_unknown_outcomes_of_a_scope_share_a_search(world: World) -> None:
    world.create(project())
    world.fail({"method": "POST"}, fault="hidden", seconds=4, status=503)
    names = [f"e{number}" for number in range(5)]
    change, live = plan(world, project(), *(pond(name) for name in names))
    report = world.apply(change, live=live)
    assert [done.adopted for done in report.done] == [True] * len(names)
    lists = [item for item in world.running.requests() if item["path"] == EXPORTS]
    # Names, three searches.
    assert [item["method"] for item in lists].count("GET") == 4


def before_create(world: World, act: Callable[[], object]) -> None:
    """Act as another client just before the create is sent, and after the names were read."""

    def react(event: Event) -> None:
        if isinstance(event, Sending) and event.method == "POST":
            act()

    world.react = react


def test_f3_a_new_object_that_differs_is_not_adopted(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    world.fail({"method": "POST", "body": {"interval": "hour"}}, fault="drop")
    before_create(world, lambda: world.post(EXPORTS, {**LAKE, "interval": "day"}))
    (failed,) = world.apply(change, live=live).failed
    assert failed.unknown
    assert "differs from what was sent" in failed.error
    assert world.names() == ["Lake", "Web"]


def test_f3_two_new_objects_are_reported_and_none_is_chosen(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    world.fail({"method": "POST", "nth": 2}, fault="error", status=503, when="after")
    before_create(world, lambda: world.post(EXPORTS, LAKE))
    (failed,) = world.apply(change, live=live).failed
    assert failed.unknown
    assert "there are 2 new objects of this name (ids " in failed.error
    assert world.posts() == 2


def test_f3_of_two_new_objects_one_may_go(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    world.fail({"method": "POST", "nth": 2}, fault="error", status=503, when="after")
    others: list[str] = []

    def react(event: Event) -> None:
        """Create the same as another client, and delete it later."""
        if isinstance(event, Sending) and event.method == "POST":
            others.append(world.post(EXPORTS, LAKE)["id"])
        if isinstance(event, Waiting) and others:
            world.running.call("DELETE", f"{EXPORTS}{others.pop()}/").raise_for_status()

    world.react = react
    (done,) = world.apply(change, live=live).done
    assert done.adopted
    assert world.names() == ["Lake", "Web"]


def test_f3_secrets_of_an_adopted_export_are_sent_again(world: World) -> None:
    world.environ = {"ID": "key-id-1234", "KEY": "hunter2hunter2"}
    world.create(project())
    change, live = plan(world, project(), export(destination=with_secrets()))
    world.fail({"method": "POST"}, fault="error", status=503, when="after")
    (done,) = world.apply(change, live=live).done
    assert done.adopted
    (patch,) = [item for item in world.running.requests() if item["method"] == "PATCH"]
    assert set(patch["body"]) == {"destination"}
    assert "aws_secret_access_key" in patch["body"]["destination"]["config"]


def test_f6_a_name_that_appeared_since_the_plan_is_not_created(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake(), pond())
    other = world.post(EXPORTS, LAKE)
    report = world.apply(change, live=live)
    (failed,) = report.failed
    assert failed.stale
    assert failed.error == (
        f"created by another client since the plan was made: 'Lake' (id {other['id']})"
    )
    assert [str(done.change.address) for done in report.done] == ["batch_export.pond"]
    assert (world.posts(), world.names()) == (1, ["Lake", "Pond", "Web"])


def test_f6_a_project_that_appeared_since_the_plan_is_not_created(world: World) -> None:
    change, live = plan(world, project(), lake())
    world.post("/api/organizations/org/projects/", {"name": " Web "})
    report = world.apply(change, live=live)
    assert [failed.stale for failed in report.failed] == [True]
    assert [skipped.because for skipped in report.skipped] == ["create of project.web failed"]
    assert world.running.writes() == []


def test_f6_a_project_pending_deletion_does_not_have_the_name(world_2026: World) -> None:
    world = world_2026
    world.create(project())
    world.running.call("DELETE", "/api/projects/2/").raise_for_status()
    change, live = plan(world, project())
    assert [item.id for item in live.of("project")] == ["1"]
    report = world.apply(change, live=live)
    assert (report.complete, world.posts()) == (True, 1)


def test_f6_names_that_cannot_be_read_completely_let_nothing_be_created(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake(), pond())
    world.fail({"path": "*/batch_exports/"}, fault="page", drop=1, count="+1")
    report = world.apply(change, live=live)
    assert ["incomplete list" in failed.error for failed in report.failed] == [True, True]
    assert world.running.writes() == []
    lists = [item for item in world.running.requests() if item["path"] == EXPORTS]
    assert len(lists) == 3


def test_f6_names_are_read_again_before_a_create_that_had_to_wait(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    world.fail({"method": "POST", "times": 1}, fault="throttle", retry_after=60)

    def react(event: Event) -> None:
        if isinstance(event, Waiting):
            world.post(EXPORTS, LAKE)

    world.react = react
    (failed,) = world.apply(change, live=live).failed
    assert failed.stale
    assert world.names() == ["Lake", "Web"]


def test_names_are_read_again_after_thirty_seconds(world: World) -> None:
    world.create(project())
    names = [f"e{number}" for number in range(10)]
    change, live = plan(world, project(), *(pond(name) for name in names))

    def react(event: Event) -> None:
        if isinstance(event, Done):
            world.clock.now += 4

    world.react = react
    assert world.apply(change, live=live, parallelism=1).complete
    paths = [(item["method"], item["path"]) for item in world.running.requests()]
    lists = [index for index, item in enumerate(paths) if item == ("GET", EXPORTS)]
    assert lists == [0, 9]


def test_names_of_new_projects_are_read_by_one_list(world: World) -> None:
    parents = [f"p{number}" for number in range(4)]
    resources = [
        *(project(name) for name in parents),
        *(export(f"{name}-e", parent=name, destination=NO_OP) for name in parents),
    ]
    assert world.apply(planned(desired_of(*resources), world.live())).complete
    gets = [item["path"] for item in world.running.requests() if item["method"] == "GET"]
    assert gets == [
        "/api/organizations/org/projects/",
        "/api/organizations/org/batch_exports/",
    ]


def test_performance_without_a_list_of_all_names_are_read_for_the_next_creates_only(
    service_of: StartService,
) -> None:
    """Those of later creates would be too old when it is their turn."""
    world = World(service_of(SEED, "--dialect", "2026", "--no-organization-list"))
    projects = [project(f"p{number}", name=f"P{number}") for number in range(6)]
    world.create(*projects)
    exports = [export(f"e{number}", parent=f"p{number}", destination=NO_OP) for number in range(6)]
    live = world.live()

    def react(event: Event) -> None:
        if isinstance(event, Done):
            world.clock.now += 31

    world.react = react
    report = world.apply(planned(desired_of(*projects, *exports), live), live=live, parallelism=2)
    assert report.complete
    methods = [item["method"] for item in world.running.requests()]
    # Two for each create but the last.
    assert methods.count("POST") == 6
    assert methods.count("GET") <= 11


def test_f6_the_server_refuses_a_name_that_the_key_does_not_see(world_2026: World) -> None:
    world = world_2026
    world.fail(
        {"method": "POST"}, fault="error", status=409, code="conflict", detail="Name is taken."
    )
    (failed,) = world.apply(planned(desired_of(project()), world.live())).failed
    assert failed.error == (
        "the name is taken by a project made meanwhile, or one that this key can't see"
    )
    assert (failed.unknown, world.posts()) == (False, 1)


def test_a_complete_answer_is_not_read_again(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    assert world.apply(change, live=live).complete
    calls = [(item["method"], item["path"]) for item in world.running.requests()]
    assert calls == [("GET", EXPORTS), ("POST", EXPORTS)]


def test_f12_a_short_answer_is_read_once(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    world.fail({"method": "POST"}, fault="body", merge={"interval": None, "destination": None})
    (done,) = world.apply(change, live=live).done
    assert done.notices == ()
    assert [method for method, _ in world.running.writes()] == ["POST"]


def test_what_a_create_does_not_keep_is_sent_by_one_patch(world_2026: World) -> None:
    filters = [{"key": "email", "value": "@a", "operator": "not_icontains", "type": "person"}]
    wanted = project(test_account_filters=filters, week_start_day=1)
    (done,) = world_2026.apply(planned(desired_of(wanted), world_2026.live())).done
    assert done.notices == ()
    (patch,) = [item for item in world_2026.running.requests() if item["method"] == "PATCH"]
    assert patch["body"] == {"test_account_filters": filters}


def test_failed_creates_give_the_id_that_exists(world_2026: World) -> None:
    filters = [{"key": "email", "value": "@a", "operator": "not_icontains", "type": "person"}]
    world_2026.fail({"method": "PATCH"}, fault="error", status=400, detail="No.")
    wanted = project(test_account_filters=filters)
    (failed,) = world_2026.apply(planned(desired_of(wanted), world_2026.live())).failed
    assert failed.live_id == "2"
    assert failed.error.startswith("created (id 2), not finished: PATCH ")


def test_apply_a7_a_create_that_had_to_wait_looks_again(world: World) -> None:
    world.create(project())
    change, live = plan(world, project(), lake())
    world.fail({"method": "POST", "times": 1}, fault="throttle", retry_after=31)

    def react(event: Event) -> None:
        """Create the export as another client in the meantime."""
        if isinstance(event, Waiting):
            world.post(EXPORTS, LAKE)

    world.react = react
    (failed,) = world.apply(change, live=live).failed
    assert "created by another client since the plan was made" in failed.error
    assert not failed.unknown
    assert world.names() == ["Lake", "Web"]


def theirs(world: World, kind: str) -> dict[str, Any]:
    """Create an object as another client, and return the answer that it got."""
    if kind == "project":
        return world.post("/api/organizations/org/projects/", {"name": "Theirs"})
    return world.post(EXPORTS, {**LAKE, "name": "Theirs"})


def lacking_name(world: World, kind: str) -> dict[str, Any]:
    return {"id": theirs(world, kind)["id"], "name": None}


def twin_elsewhere(world: World, kind: str) -> dict[str, Any]:
    """Answer with an object of the same name: of another project, or one that existed before."""
    if kind == "project":
        return {"id": 1}
    return world.post(EXPORTS.replace("2", "1"), {**LAKE, "name": "New"})


WRONG = {
    "newer": theirs,
    "without-name": lacking_name,
    "elsewhere": twin_elsewhere,
    "number": lambda *_: {"id": 1.5, "name": "New"},
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["project", "batch_export"])
@pytest.mark.parametrize("wrong", WRONG)
def test_apply_a1_an_answer_that_shows_another_object_is_not_believed(
    service_of: StartService, wrong: str, kind: str, dialect: str
) -> None:
    world = World(service_of(SEED, "--dialect", dialect))
    world.create(project())
    new = project("new") if kind == "project" else lake(name="New")
    change, live = plan(world, project(), new)
    body: dict[str, Any] = {}

    def answer_wrongly() -> None:
        if not body:
            body.update(WRONG[wrong](world, kind))
            world.fail({"method": "POST", "times": 1}, fault="body", merge=body)

    before_create(world, answer_wrongly)
    report = world.apply(change, live=live)
    (done,) = report.done
    assert done.adopted
    assert done.live_id != str(body["id"])
    assert world.names().count("New") == 1 + (wrong == "elsewhere" and kind == "batch_export")
    written = [it for it in world.running.requests() if it["method"] in ("PATCH", "DELETE")]
    assert not [it for it in written if f"/{body['id']}/" in it["path"]]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["project", "batch_export"])
def test_apply_a1_exchanged_answers_of_two_creates_are_told_apart(
    service_of: StartService, kind: str, dialect: str
) -> None:
    world = World(service_of(SEED, "--dialect", dialect))
    world.create(project())
    both = (
        [project("one"), project("two")]
        if kind == "project"
        else [lake(key="one", name="One"), lake(key="two", name="Two", interval="day")]
    )
    change, live = plan(world, project(), *both)
    bodies = [
        {"id": number + 90 if kind == "project" else f"{number:032x}", "name": name}
        for number, name in ((1, "Two"), (2, "One"))
    ]
    world.fail_each(
        ({"method": "POST", "body": {"name": "One"}}, {"fault": "body", "merge": bodies[0]}),
        ({"method": "POST", "body": {"name": "Two"}}, {"fault": "body", "merge": bodies[1]}),
    )
    report = world.apply(change, live=live)
    assert {done.adopted for done in report.done} == {True}
    assert report.complete
    after, _ = plan(world, project(), *both)
    assert after.empty


def test_a_failure_after_an_adoption_reports_the_adopted_object(world: World) -> None:
    world.environ = {"ID": "key-id-1234", "KEY": "hunter2hunter2"}
    world.create(project())
    change, live = plan(world, project(), export(destination=with_secrets()))
    world.fail_each(
        ({"method": "POST"}, {"fault": "error", "status": 503, "when": "after"}),
        ({"method": "PATCH"}, {"fault": "error", "status": 400}),
    )
    (failed,) = world.apply(change, live=live).failed
    assert failed.adopted
    assert failed.live_id is not None
    assert not failed.unknown
