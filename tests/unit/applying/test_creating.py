"""A create is sent at most once: names before it, a search after an unknown outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.applying.check import SEARCH_PAUSES
from reconciler.model.event import Done, Event, Sending, Waiting
from tests.support.worlds import export, project, with_secrets
from tests.unit.applying.conftest import EXPORTS, NO_OP, SECRETS, World, lake

LAKE = {"name": "Lake", "interval": "hour", "destination": NO_OP}
PROJECTS = "/api/organizations/org/projects/"
FILTERS = [{"key": "email", "value": "@a", "operator": "not_icontains", "type": "person"}]
POST = {"method": "POST"}
LOST = {"fault": "error", "status": 503, "when": "after"}
UNKNOWN: list[dict[str, Any]] = [
    {"fault": "drop", "when": "after"},
    {"fault": "error", "status": 500, "when": "after"},
    LOST,
    {"fault": "html", "status": 502, "when": "after"},
    {"fault": "html", "status": 200, "when": "after"},
    {"fault": "truncate"},
    {"fault": "body", "text": ""},
    {"fault": "body", "value": {}},
    {"fault": "body", "value": [], "status": 200},
    {"fault": "body", "merge": {"id": 1}},
    *({"fault": "late", "seconds": seconds} for seconds in (0.3, 1.5)),
    {"fault": "late", "seconds": 15, "status": 500},
    {"fault": "late", "seconds": 15, "answer_with": "drop"},
    {"fault": "hidden", "seconds": 12, "status": 503},
]


@pytest.fixture
def web(world: World) -> World:
    """Return a world with the project of the exports."""
    world.create(project())
    return world


# Unknown outcomes


@pytest.mark.parametrize("fault", UNKNOWN, ids=lambda fault: "-".join(map(str, fault.values())))
def test_f3_a_create_without_a_clear_answer_is_adopted_and_not_sent_again(
    world: World, fault: dict[str, Any]
) -> None:
    world.fail(POST, **fault)
    (done,) = world.run(project()).done
    assert (world.posts(), world.names()) == (1, ["Web"])
    assert (done.live_id, done.adopted) == ("2", True)


def test_f3_a_create_that_took_no_effect_is_reported_and_not_sent_again(world: World) -> None:
    world.fail(POST, fault="error", status=504)
    report = world.run(project(), lake())
    (failed,) = report.failed
    assert failed.unknown
    assert failed.error.endswith(
        "outcome unknown, the request may have taken effect; "
        "no object of this name appeared in 30 s"
    )
    assert [skipped.because for skipped in report.skipped] == ["create of project.web failed"]
    assert (world.posts(), world.clock.pauses) == (1, list(SEARCH_PAUSES))


def test_f3_all_unknown_outcomes_of_a_scope_share_a_search(web: World) -> None:
    web.fail(POST, fault="hidden", seconds=4, status=503)
    report = web.run(project(), *(lake(f"e{number}") for number in range(5)))
    assert [done.adopted for done in report.done] == [True] * 5
    # Names, three searches.
    assert web.calls(EXPORTS).count("GET") == 4


@pytest.mark.parametrize(
    ("fault", "theirs", "error"),
    [
        (
            {"match": {**POST, "body": {"interval": "hour"}}, "fault": "drop"},
            {"interval": "day"},
            0,
        ),
        ({"match": {**POST, "nth": 2}, **LOST}, {}, 1),
    ],
    ids=["one that differs", "two"],
)
def test_f3_new_objects_of_another_client_are_not_adopted(
    web: World, fault: dict[str, Any], theirs: dict[str, Any], error: int
) -> None:
    change = web.plan(project(), lake())
    web.running.admin("PUT", "faults", [fault])
    web.act_before(Sending, lambda: web.post(EXPORTS, {**LAKE, **theirs}), "POST")
    (failed,) = web.apply(change).failed
    assert failed.unknown
    texts = "differs from what was sent", "there are 2 new objects of this name (ids "
    assert texts[error] in failed.error
    assert web.names() == ["Lake"] * (1 + error) + ["Web"]
    assert web.posts() == 2


def test_f3_of_two_new_objects_one_may_go(web: World) -> None:
    change = web.plan(project(), lake())
    web.fail({**POST, "nth": 2}, **LOST)

    def create() -> None:
        """Create the same as another client, and delete it later."""
        path = f"{EXPORTS}{web.post(EXPORTS, LAKE)['id']}/"
        web.act_before(Waiting, lambda: web.running.call("DELETE", path).raise_for_status())

    web.act_before(Sending, create, "POST")
    (done,) = web.apply(change).done
    assert done.adopted
    assert web.names() == ["Lake", "Web"]


@pytest.mark.parametrize("fails", [False, True], ids=["done", "failed"])
def test_f3_secrets_of_an_adopted_export_are_sent_again(web: World, *, fails: bool) -> None:
    web.environ = SECRETS
    change = web.plan(project(), export(destination=with_secrets()))
    refused = {"method": "PATCH"}, {"fault": "error", "status": 400}
    web.fail_each((POST, LOST), *([refused] if fails else []))
    report = web.apply(change)
    (end,) = report.failed if fails else report.done
    assert end.adopted
    assert end.live_id is not None
    (patch,) = [item for item in web.running.requests() if item["method"] == "PATCH"]
    assert set(patch["body"]) == {"destination"}
    assert "aws_secret_access_key" in patch["body"]["destination"]["config"]
    assert [failed.unknown for failed in report.failed] == [False] * fails


# Names


def test_f6_a_name_that_appeared_since_the_plan_is_not_created(web: World) -> None:
    change = web.plan(project(), lake(), lake("pond"))
    other = web.post(EXPORTS, LAKE)
    report = web.apply(change)
    (failed,) = report.failed
    assert failed.stale
    assert failed.error == (
        f"created by another client since the plan was made: 'Lake' (id {other['id']})"
    )
    assert [str(done.change.address) for done in report.done] == ["batch_export.pond"]
    assert (web.posts(), web.names()) == (1, ["Lake", "Pond", "Web"])


def test_f6_a_project_that_appeared_since_the_plan_is_not_created(world: World) -> None:
    change = world.plan(project(), lake())
    world.post(PROJECTS, {"name": " Web "})
    report = world.apply(change)
    assert [failed.stale for failed in report.failed] == [True]
    assert [skipped.because for skipped in report.skipped] == ["create of project.web failed"]
    assert world.running.writes() == []


def test_f6_a_project_pending_deletion_does_not_have_the_name(world_2026: World) -> None:
    world = world_2026
    world.create(project())
    world.running.call("DELETE", "/api/projects/2/").raise_for_status()
    report = world.run(project())
    assert (report.complete, world.posts()) == (True, 1)


def test_f6_names_that_cannot_be_read_completely_let_nothing_be_created(web: World) -> None:
    change = web.plan(project(), lake(), lake("pond"))
    web.fail({"path": "*/batch_exports/"}, fault="page", drop=1, count="+1")
    report = web.apply(change)
    assert ["incomplete list" in failed.error for failed in report.failed] == [True, True]
    assert web.running.writes() == []
    assert web.calls(EXPORTS) == ["GET"] * 3


def test_f6_apply_a7_names_are_read_again_before_a_create_that_had_to_wait(web: World) -> None:
    change = web.plan(project(), lake())
    web.fail({**POST, "times": 1}, fault="throttle", retry_after=31)
    web.act_before(Waiting, lambda: web.post(EXPORTS, LAKE))
    (failed,) = web.apply(change).failed
    assert "created by another client since the plan was made" in failed.error
    assert (failed.stale, failed.unknown) == (True, False)
    assert web.names() == ["Lake", "Web"]


def test_names_are_read_again_after_thirty_seconds(web: World) -> None:
    change = web.plan(project(), *(lake(f"e{number}") for number in range(10)))

    def wait(event: Event) -> None:
        web.clock.now += 4 * isinstance(event, Done)

    web.react = wait
    assert web.apply(change, parallelism=1).complete
    lists = [number for number, call in enumerate(web.calls(EXPORTS)) if call == "GET"]
    assert lists == [0, 9]


def test_names_of_new_projects_are_read_by_one_list(world: World) -> None:
    parents = [f"p{number}" for number in range(4)]
    exports = (lake(f"{name}-e", parent=name) for name in parents)
    assert world.run(*map(project, parents), *exports).complete
    gets = [item["path"] for item in world.running.requests() if item["method"] == "GET"]
    assert gets == [PROJECTS, "/api/organizations/org/batch_exports/"]


def test_f6_the_server_refuses_a_name_that_the_key_does_not_see(world_2026: World) -> None:
    taken = {"status": 409, "code": "conflict", "detail": "Name is taken."}
    world_2026.fail(POST, fault="error", **taken)
    (failed,) = world_2026.run(project()).failed
    assert failed.error == (
        "the name is taken by a project made meanwhile, or one that this key can't see"
    )
    assert (failed.unknown, world_2026.posts()) == (False, 1)


# Answers


@pytest.mark.parametrize(
    ("merge", "calls"),
    [({"name": "Lake"}, []), ({"interval": None, "destination": None}, ["GET"])],
    ids=["complete", "short"],
)
def test_f12_an_answer_is_read_again_only_if_it_is_short(
    web: World, merge: dict[str, Any], calls: list[str]
) -> None:
    change = web.plan(project(), lake())
    web.fail(POST, fault="body", merge=merge)
    (done,) = web.apply(change).done
    assert done.notices == ()
    assert web.calls() == ["GET", "POST", *calls]


def test_what_a_create_does_not_keep_is_sent_by_one_patch(world_2026: World) -> None:
    wanted = project(test_account_filters=FILTERS, week_start_day=1)
    (done,) = world_2026.run(wanted).done
    assert done.notices == ()
    (patch,) = [item for item in world_2026.running.requests() if item["method"] == "PATCH"]
    assert patch["body"] == {"test_account_filters": FILTERS}


def theirs(world: World, kind: str) -> dict[str, Any]:
    """Create an object as another client, and return the answer that it got."""
    if kind == "project":
        return world.post(PROJECTS, {"name": "Theirs"})
    return world.post(EXPORTS, {**LAKE, "name": "Theirs"})


def twin_elsewhere(world: World, kind: str) -> dict[str, Any]:
    """Answer with an object of the same name: of another project, or one that existed before."""
    if kind == "project":
        return {"id": 1}
    return world.post(EXPORTS.replace("2", "1"), {**LAKE, "name": "New"})


WRONG: dict[str, Callable[[World, str], dict[str, Any]]] = {
    "newer": theirs,
    "without-name": lambda world, kind: {"id": theirs(world, kind)["id"], "name": None},
    "elsewhere": twin_elsewhere,
    "number": lambda *_: {"id": 1.5, "name": "New"},
}


@pytest.mark.parametrize("kind", ["project", "batch_export"])
@pytest.mark.parametrize("wrong", WRONG)
def test_apply_a1_an_answer_that_shows_another_object_is_not_believed(
    world_2026: World, wrong: str, kind: str
) -> None:
    world = world_2026
    world.create(project())
    new = project("new") if kind == "project" else lake(name="New")
    change, body = world.plan(project(), new), dict[str, Any]()

    def answer_wrongly() -> None:
        body.update(WRONG[wrong](world, kind))
        world.fail({**POST, "times": 1}, fault="body", merge=body)

    world.act_before(Sending, answer_wrongly, "POST")
    (done,) = world.apply(change).done
    assert done.adopted
    assert done.live_id != str(body["id"])
    assert world.names().count("New") == 1 + (wrong == "elsewhere" and kind == "batch_export")
    written = [it for it in world.running.requests() if it["method"] in ("PATCH", "DELETE")]
    assert not [it for it in written if f"/{body['id']}/" in it["path"]]
