"""Replacements that were interrupted, and duplicates that look like one. Case by case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.errors import AmbiguousIdentity
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import Live, LiveObject, marked_name
from reconciler.model.plan import Plan, Reason, SecretUse
from reconciler.model.policy import Limit, PlanOptions, Policy, Prune
from reconciler.model.resource import Desired, Lifecycle, State
from reconciler.model.values import SecretRef
from tests.support.worlds import (
    PureServer,
    base_of,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    with_secrets,
)

WEB, APP = project(), project("app")
NO_OP = {"type": "NoOp", "config": {}}
MARKED = marked_name("Lake", "e1")
BASE = desired_of(WEB, APP, export())
MOVED = desired_of(WEB, APP, export(parent="app"))
ALLOWED = PlanOptions(allow_replace=True)


def moved_live(*exports: LiveObject) -> Live:
    return live_of(live_project(1), live_project(2, "App"), *exports)


def in_place_live(**new: Any) -> Live:
    """A type change on a server that fixes it: the new object exists, the old one, too."""
    marked = live_export("e2", MARKED, **{"destination": NO_OP, **new})
    return live_of(live_project(), live_export(), marked, dialect=Dialect.V2026)


def codes(plan: Plan) -> list[str]:
    return [note.code for note in plan.notes]


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_a_replacement_shows_that_it_pauses_or_unpauses(before: bool, after: bool) -> None:
    live = moved_live(live_export(paused=before))
    desired = desired_of(WEB, APP, export(parent="app", paused=after))
    (change,) = planned(desired, live, options=ALLOWED, base=BASE).effective
    shown = {item.path: (item.before, item.after) for item in change.fields}
    assert (change.action, shown["paused",]) == (Action.REPLACE, (before, after))
    rules = {consequence.rule for consequence in change.consequences}
    assert ("gap-before-unpausing" in rules, "runs-missed-while-paused" in rules) == (before, after)
    assert [place.again for place in change.new] == [before]


SNOWFLAKE = {"database": "d", "warehouse": "w", "schema": "s", "account": "a"}
COPY = {"s3_bucket": "b", "region_name": "r", "authorization": "role", "bucket_credentials": 7}
REDSHIFT = {"database": "d", "mode": "COPY", "copy_inputs": COPY}


@pytest.mark.parametrize(
    ("dialect", "destination", "code", "message"),
    [
        (
            Dialect.V2025,
            s3(),
            "credentials-not-readable",
            "does not return aws_access_key_id, aws_secret_access_key, which",
        ),
        (
            Dialect.V2025,
            {"type": "Snowflake", "config": {**SNOWFLAKE, "password": SecretRef.of("env", "X")}},
            "credentials-not-readable",
            "does not return user, which",
        ),
        (
            Dialect.V2026,
            {"type": "Redshift", "integration": 8, "config": REDSHIFT},
            "integration-of-another-project",
            "integration 7 belongs to the project that the export moves from",
        ),
    ],
)
def test_a_move_that_would_lose_what_it_cannot_copy_is_refused(
    dialect: Dialect, destination: dict[str, Any], code: str, message: str
) -> None:
    live = replace(moved_live(live_export(destination=destination)), dialect=dialect)
    wanted = {**destination, "integration": 9} if dialect is Dialect.V2026 else destination
    desired = desired_of(WEB, APP, export(parent="app", destination=wanted))
    (refusal,) = planned(desired, live, options=ALLOWED, base=BASE).refusals
    assert refusal.rule == code
    assert message in refusal.message
    attempted = Policy(attempt=(code,))
    assert not planned(desired, live, attempted, options=ALLOWED, base=BASE).refusals


@pytest.mark.parametrize(
    ("before", "after"), [(s3(), with_secrets()), (NO_OP, s3()), (s3(), NO_OP)]
)
def test_a_move_that_loses_no_credentials_is_not_refused(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    live = replace(moved_live(live_export(destination=before)), dialect=Dialect.V2025)
    desired = desired_of(WEB, APP, export(parent="app", destination=after))
    assert not planned(desired, live, options=ALLOWED, base=BASE).refusals


def test_policy_deny_sees_what_else_a_replacement_changes() -> None:
    changed = {"interval": "day", "destination": with_secrets(prefix="q/")}
    live, policy = moved_live(live_export()), Policy(deny=("interval-changed", "destination-moved"))
    desired = desired_of(WEB, APP, export(parent="app", **changed))
    plan = planned(desired, live, policy, options=ALLOWED, base=BASE)
    assert [refusal.rule for refusal in plan.refusals] == ["deny", "deny"]


def test_a_replacement_keeps_ignored_and_unmanaged_values() -> None:
    config = {"compression": "gzip", "exclude_events": ["signup"], "prefix": "live/"}
    destination = with_secrets(prefix="files/")
    of_former_type = {"host": "db.example"}
    stored = s3(**config, **of_former_type)
    live = moved_live(live_export(interval="day", paused=True, destination=stored, end_at=None))
    ignored = ("destination.config.prefix", "end_at", "interval", "paused")
    values = {"destination": destination, "end_at": "2030-01-01T00:00:00Z", "paused": False}
    desired = desired_of(
        WEB, APP, export(parent="app", lifecycle=Lifecycle(ignore_changes=ignored), **values)
    )
    plan = planned(desired, live, options=ALLOWED, base=BASE)
    (change,) = plan.effective
    assert change.body is not None
    sent = change.body["destination"]["config"]
    assert (sent.items() >= config.items(), sent.keys() & of_former_type) == (True, set())
    assert (change.body["interval"], change.body["paused"]) == ("day", True)
    assert "end_at" not in change.body
    assert {item.path for item in change.fields} == {("project",)}
    server = PureServer(live)
    server.apply(plan)
    assert planned(desired, server.live(), options=ALLOWED, base=desired).empty


def test_a_replacement_shows_ignored_values_that_it_cannot_keep() -> None:
    live = moved_live(live_export(destination=NO_OP))
    desired = desired_of(
        WEB,
        APP,
        replace(
            export(parent="app", destination=with_secrets(), name="Sea"),
            lifecycle=Lifecycle(ignore_changes=("destination", "name")),
        ),
    )
    (change,) = planned(desired, live, options=ALLOWED, base=BASE).effective
    paths = {item.path for item in change.fields}
    assert paths >= {("project",), ("name",), ("destination", "type")}


def test_f4_a_move_that_was_cut_short_is_continued() -> None:
    live = moved_live(live_export("e1"), live_export("e2", MARKED, parent=2))
    plan = planned(MOVED, live, options=ALLOWED, base=BASE)
    (change,) = plan.effective
    assert (change.action, change.live_id, change.new_id) == (Action.REPLACE, "e1", "e2")
    assert (change.old_parent_id, change.parent_id) == ("1", "2")
    assert change.reasons == (Reason.MOVED, Reason.INTERRUPTED)
    assert change.body == {"name": "Lake"}
    assert plan.refusals == ()
    assert plan.unmanaged == ()


def test_f4_a_replacement_in_place_that_was_cut_short_is_continued() -> None:
    desired = desired_of(WEB, export(destination=NO_OP))
    server = PureServer(in_place_live())
    plan = planned(desired, server.live(), options=ALLOWED)
    (change,) = plan.effective
    assert (change.action, change.live_id, change.new_id) == (Action.REPLACE, "e1", "e2")
    server.apply(plan)
    assert planned(desired, server.live(), options=ALLOWED).empty
    assert [item.id for item in server.live().of("batch_export")] == ["e2"]


def test_f4_a_replacement_whose_old_object_is_gone_is_a_rename() -> None:
    live = moved_live(live_export("e2", MARKED, parent=2))
    for base in (None, BASE):
        (change,) = planned(MOVED, live, base=base).effective
        assert (change.action, change.live_id) == (Action.UPDATE, "e2")
        assert change.body == {"name": "Lake"}


def test_f4_old_and_new_without_a_mark_are_ambiguous() -> None:
    live = moved_live(live_export("e1"), live_export("e2", parent=2))
    with pytest.raises(AmbiguousIdentity) as error:
        planned(MOVED, live, base=BASE)
    message = "2 live batch_exports may be this resource, by its name or by the git base"
    assert message in error.value.message
    assert error.value.candidates == (("batch_export", "e1"), ("batch_export", "e2"))
    pinned = desired_of(WEB, APP, export(parent="app", pinned_id="e2"))
    assert planned(pinned, live, base=BASE).empty


def test_the_rest_of_a_replacement_needs_the_permission_of_a_replacement() -> None:
    live = moved_live(live_export("e1"), live_export("e2", MARKED, parent=2))
    refused = planned(MOVED, live, base=BASE)
    assert [refusal.rule for refusal in refused.refusals] == ["allow_replace"]
    protected = Lifecycle(protect=True)
    desired = desired_of(WEB, APP, export(parent="app", lifecycle=protected))
    plan = planned(desired, live, options=ALLOWED, base=BASE)
    assert [refusal.rule for refusal in plan.refusals] == ["protect"]
    limited = Policy(max_deletes=Limit(0))
    plan = planned(MOVED, live, limited, options=ALLOWED, base=BASE)
    assert [refusal.rule for refusal in plan.refusals] == ["max_deletes"]


def test_a_resource_with_an_id_is_not_replaced() -> None:
    base = desired_of(WEB, APP, export(pinned_id="e1"))
    moved = export(parent="app", pinned_id="e1", destination=with_secrets())
    pinned = desired_of(WEB, APP, moved)
    unpinned = desired_of(WEB, APP, replace(moved, pinned_id=None))
    for new in ((), (live_export("e2", MARKED, parent=2),)):
        live = moved_live(live_export("e1"), *new)
        plan = planned(pinned, live, options=ALLOWED, base=base)
        assert [refusal.rule for refusal in plan.refusals] == ["replaced-id"]
        assert not planned(unpinned, live, options=ALLOWED, base=base).refusals


def test_a_mark_does_not_pick_an_object_that_is_not_of_the_resource() -> None:
    """Without a base, nothing shows that the old object in another project is this resource."""
    live = moved_live(live_export("e1"), live_export("e2", MARKED, parent=2))
    with pytest.raises(AmbiguousIdentity, match="interrupted and can't be continued") as error:
        planned(MOVED, live)
    assert "{lake: {id: e1}}" in (error.value.hint or "")
    assert [live_id for _, live_id in error.value.candidates] == ["e1", "e2"]


def test_two_new_objects_of_one_replacement_are_an_error() -> None:
    new = [live_export(identity, MARKED, parent=2) for identity in ("e2", "e3")]
    live = moved_live(live_export("e1"), *new)
    with pytest.raises(AmbiguousIdentity, match="interrupted and can't be continued"):
        planned(MOVED, live, base=BASE)


def test_a_new_object_in_another_place_than_today_is_an_error() -> None:
    lab = project("lab")
    live = live_of(
        *moved_live(live_export("e1"), live_export("e2", MARKED, parent=2)).of("project")
    )
    live = live_of(
        *live.of("project"),
        live_project(3, "Lab"),
        live_export("e1"),
        live_export("e2", MARKED, parent=2),
    )
    with pytest.raises(AmbiguousIdentity, match="interrupted and can't be continued"):
        planned(desired_of(WEB, APP, lab, export(parent="lab")), live, base=BASE)


def test_a_replacement_is_continued_after_another_rename() -> None:
    live = moved_live(live_export("e1"), live_export("e2", MARKED, parent=2))
    desired = desired_of(WEB, APP, export(name="Sea", parent="app"))
    (change,) = planned(desired, live, options=ALLOWED, base=base_of(BASE, MOVED)).effective
    assert (change.live_id, change.new_id) == ("e1", "e2")
    assert change.body == {"name": "Sea"}
    without_old = moved_live(live_export("e2", MARKED, parent=2))
    (change,) = planned(desired, without_old, base=base_of(BASE, MOVED)).effective
    assert (change.action, change.live_id) == (Action.UPDATE, "e2")


def test_fields_that_changed_since_are_sent_with_the_rename() -> None:
    destination = with_secrets(prefix="new/")
    desired = desired_of(WEB, APP, export(parent="app", destination=destination, paused=True))
    before = desired_of(WEB, APP, export(destination=with_secrets(), secret_version="1"))
    live = moved_live(live_export("e1"), live_export("e2", MARKED, parent=2))
    plan = planned(desired, live, options=ALLOWED, base=before)
    pause, rest = plan.effective
    assert (pause.action, pause.live_id) == (Action.PAUSE, "e2")
    assert rest.new_id == "e2"
    assert rest.depends_on == (pause.id,)
    assert rest.body["name"] == "Lake"
    assert set(rest.body["destination"]["config"]) == {
        "prefix",
        "aws_access_key_id",
        "aws_secret_access_key",
    }
    assert {note.use for note in rest.secrets} == {SecretUse.VERSION_CHANGED}


def test_a_replacement_is_continued_after_a_field_was_removed_from_the_files() -> None:
    before = desired_of(WEB, APP, export(end_at="2030-01-01T00:00:00Z"))
    both = (("e1", "Lake", 1), ("e2", MARKED, 2))
    ending = {"end_at": "2030-01-01T00:00:00Z"}
    live = moved_live(*(live_export(own, name, parent=at, **ending) for own, name, at in both))
    (change,) = planned(MOVED, live, options=ALLOWED, base=before).effective
    assert (change.new_id, change.body) == ("e2", {"name": "Lake", "end_at": None})


def test_an_unpaused_object_starts_after_the_old_one_is_deleted() -> None:
    desired = desired_of(WEB, APP, export(parent="app", paused=False))
    marked = live_export("e2", MARKED, parent=2, paused=True)
    live = moved_live(live_export("e1", paused=True), marked)
    rest, unpause = planned(desired, live, options=ALLOWED, base=BASE).effective
    assert (rest.new_id, unpause.live_id) == ("e2", "e2")
    assert unpause.depends_on == (rest.id,)


@pytest.mark.parametrize(
    ("new", "desired", "reason"),
    [
        ({}, s3(), "does not need it any more"),
        ({"destination": s3()}, NO_OP, "a fixed field of the new object differs"),
        ({"end_at": "2030-01-01T00:00:00Z"}, NO_OP, "the old object was modified since"),
        ({"paused": True}, NO_OP, "the old object was modified since"),
    ],
)
def test_a_replacement_that_no_longer_fits_is_an_error(
    new: dict[str, Any], desired: dict[str, Any], reason: str
) -> None:
    with pytest.raises(AmbiguousIdentity, match=reason) as error:
        planned(desired_of(WEB, export(destination=desired)), in_place_live(**new))
    assert error.value.candidates == (("batch_export", "e1"), ("batch_export", "e2"))


def test_a_pin_decides_between_the_old_and_the_new_object() -> None:
    live = in_place_live()
    old = planned(desired_of(WEB, export(pinned_id="e1")), live)
    assert old.empty
    new = planned(desired_of(WEB, export(pinned_id="e2", destination=NO_OP)), live)
    (change,) = new.effective
    assert (change.action, change.live_id) == (Action.UPDATE, "e2")


def test_a_marked_object_is_never_unmanaged_silently() -> None:
    live = moved_live(live_export("e1"), live_export("e2", MARKED, parent=2))
    absent = planned(desired_of(WEB, APP, export(state=State.ABSENT)), live)
    assert [change.live_id for change in absent.effective] == ["e1"]
    for plan in (planned(desired_of(WEB, APP), live), absent):
        assert codes(plan).count("interrupted-replacement") == 1
    pinned = planned(desired_of(WEB, export(pinned_id="e1")), in_place_live())
    assert "interrupted-replacement" in codes(pinned)


def test_a_declared_name_that_looks_like_a_mark_is_an_ordinary_name() -> None:
    for old in ("e1", "gone"):
        name = marked_name("Lake", old)
        live = live_of(live_project(), live_export("e1"), live_export("e2", name))
        desired = desired_of(WEB, export(), export("other", name=name))
        assert planned(desired, live).empty


def test_a_marked_object_of_a_removed_resource_is_pruned() -> None:
    live = moved_live(live_export("e2", MARKED, parent=2))
    policy = Policy(prune={"*": Prune.GIT})
    plan = planned(desired_of(WEB, APP), live, policy, base=base_of(BASE, MOVED))
    assert [(change.action, change.live_id) for change in plan.effective] == [(Action.DELETE, "e2")]


@pytest.mark.parametrize(
    ("other", "is_noted"),
    [
        (live_export("e9", parent=2), True),
        (live_export("e9", "Other", parent=2), True),
        (live_export("e9", parent=2, destination=s3(prefix="other/")), False),
        (live_export("e9", parent=2, interval="day"), True),
    ],
)
def test_a_second_export_at_the_same_place_is_noted(other: LiveObject, *, is_noted: bool) -> None:
    desired = desired_of(WEB, APP, export(destination=with_secrets()))
    noted = codes(planned(desired, moved_live(live_export(), other)))
    assert ("same-place" in noted) is is_noted


def test_two_managed_exports_at_the_same_place_have_one_note() -> None:
    live = moved_live(live_export(), live_export("e9", parent=2))
    desired = desired_of(WEB, APP, export(), export("other", name="Lake", parent="app"))
    assert codes(planned(desired, live)) == ["no-git-base", "same-place"]


def _interrupted(world: Desired) -> Live:
    """Return live state after the create and before the deletion of a replacement."""
    server = PureServer(moved_live(live_export("e1")))
    (old,) = server.live().of("batch_export")
    server.apply(planned(world, server.live(), base=BASE))
    (new,) = server.live().of("batch_export")
    name = marked_name(new.name, old.id)
    return moved_live(old, replace(new, name=name, body={**new.body, "name": name}))


def test_f4_an_interrupted_replacement_converges() -> None:
    server = PureServer(_interrupted(MOVED))
    plan = planned(MOVED, server.live(), base=BASE)
    assert plan.effective[0].new_id is not None
    server.apply(plan)
    assert planned(MOVED, server.live(), base=BASE).empty
    assert [item.parent_id for item in server.live().of("batch_export")] == ["2"]


@pytest.mark.parametrize("finish", [False, True])
def test_a_replacement_resets_what_was_removed_from_the_configuration(finish: bool) -> None:
    """The plan shows the reset, so the new object must not get the former value."""
    first = desired_of(project(), project("b"), export(end_at="2030-01-01T00:00:00Z"))
    head = desired_of(project(), project("b"), export(parent="b"))
    old = live_export(end_at="2030-01-01T00:00:00Z", timezone="Asia/Tokyo")
    server = PureServer(live_of(live_project(), live_project(2, "B"), old))
    options = PlanOptions(allow_replace=True)
    plan = planned(head, server.live(), options=options, base=first)
    (change,) = plan.effective
    assert [(item.path, item.after) for item in change.fields if item.reset] == [
        (("end_at",), None)
    ]
    assert "end_at" not in (change.body or {})
    assert (change.body or {})["timezone"] == "Asia/Tokyo"
    if finish:
        server.create_marked(change, marked_name("Lake", "e1"))
        plan = planned(head, server.live(), options=options, base=first)
    server.apply(plan)
    assert planned(head, server.live(), options=options, base=first).empty
