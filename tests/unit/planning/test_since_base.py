"""What a plan compares with the git base by live object: origins, resets, loosened settings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.authoring.drift import drift_of
from reconciler.model.address import Address
from reconciler.model.connection import Readable
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan, Reason, SecretUse
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, Lifecycle, Resource
from reconciler.model.values import SecretRef, path_text
from reconciler.planning.base import Base
from reconciler.workspace.workspace_file import Workspace, policy_of
from reconciler.workspace.yaml.document import Document
from tests.support.worlds import (
    base_of,
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


def origins(plan: Plan) -> dict[str, str]:
    return {
        ".".join(map(str, field.path)): field.origin.value
        for change in plan.effective
        for field in change.fields
    }


def messages(plan: Plan, code: str) -> list[str]:
    return [note.message for note in plan.notes if note.code == code]


# The origin of a field


@pytest.mark.parametrize(
    ("base", "now", "live", "expected"),
    [
        pytest.param(
            desired_of(WEB, export()),
            desired_of(WEB, export("lake-eu", name="Lake", destination=s3(bucket_name="evil"))),
            (live_project(), live_export()),
            {"destination.config.bucket_name": "files"},
            id="key-renamed",
        ),
        pytest.param(
            desired_of(WEB, export()),
            desired_of(WEB, export("lake-eu", name="Lake")),
            (live_project(), live_export(interval="day")),
            {"interval": "live"},
            id="key-renamed-and-real-drift",
        ),
        pytest.param(
            desired_of(WEB, export()),
            desired_of(
                WEB,
                export(
                    "lake-eu",
                    name="EU",
                    lifecycle=Lifecycle(renamed_from=("Lake",)),
                    destination=s3(bucket_name="evil"),
                ),
            ),
            (live_project(), live_export(interval="day")),
            {"name": "files", "interval": "live", "destination.config.bucket_name": "files"},
            id="key-and-name-renamed",
        ),
        pytest.param(
            desired_of(project(timezone="UTC"), export()),
            desired_of(
                Resource(Address("project", "shop"), {"name": "Web", "timezone": "Europe/Berlin"}),
                export(parent="shop"),
            ),
            (live_project(timezone="UTC"), live_export(interval="day")),
            {"timezone": "files", "interval": "live"},
            id="key-of-a-project-renamed",
        ),
        pytest.param(
            desired_of(WEB),
            desired_of(WEB, export(destination=s3(bucket_name="evil"))),
            (live_project(), live_export()),
            {"destination.config.bucket_name": "files"},
            id="adopted-by-name",
        ),
        pytest.param(
            desired_of(WEB, export()),
            desired_of(WEB, export(pinned_id="e9", name="Theirs")),
            (live_project(), live_export("e9", "Theirs", interval="day")),
            {"interval": "files"},
            id="adopted-by-id-under-a-key-of-the-base",
        ),
        pytest.param(
            desired_of(WEB, export(pinned_id="e1", name="Sea")),
            desired_of(WEB, export("other", pinned_id="e1", name="Sea")),
            (live_project(), live_export()),
            {"name": "live"},
            id="pinned-under-another-key",
        ),
        pytest.param(
            desired_of(WEB, export()),
            desired_of(WEB, export(pinned_id="b")),
            (live_project(), live_export("a"), live_export("b", interval="day")),
            {"interval": "files"},
            id="not-certain-at-the-base",
        ),
    ],
)
def test_plan_o1_the_base_of_a_field_is_the_declaration_of_the_same_object(
    base: Desired, now: Desired, live: tuple[LiveObject, ...], expected: dict[str, str]
) -> None:
    plan = planned(now, live_of(*live), base=base_of(base))
    assert origins(plan) == expected
    # A later commit of the range, such as that of the pull request, decides nothing.
    again = planned(now, live_of(*live), base=base_of(base, now))
    assert origins(again) == expected
    fields = [item for one in drift_of(again, base_of(base)).objects for item in one.fields]
    drifted = {path_text(item.path) for item in fields}
    assert drifted == {path for path, origin in expected.items() if origin == "live"}


def test_plan_o1_a_base_that_the_default_branch_lacks_decides_nothing() -> None:
    evil = desired_of(WEB, export(destination=s3(bucket_name="evil")))
    live = live_of(live_project(), live_export())
    assert origins(planned(evil, live, base=base_of(evil))) == {
        "destination.config.bucket_name": "live"
    }
    plan = planned(evil, live, base=base_of(evil, merged=False))
    assert origins(plan) == {"destination.config.bucket_name": "files"}
    assert plan.effective[0].reasons == (Reason.CHANGED_IN_FILES,)


def test_plan_o1_a_field_of_the_former_key_is_reset_and_its_secret_compared() -> None:
    def pond(key: str, secret: str, **more: Any) -> Desired:
        ref = SecretRef.of("env", secret)
        config = {"aws_access_key_id": ref, "aws_secret_access_key": ref}
        return desired_of(WEB, export(key, name="Lake", destination=s3(**config), **more))

    ends: dict[str, Any] = {"end_at": "2027-01-01T00:00:00Z"}
    (change,) = planned(
        pond("lake-eu", "NEW"),
        live_of(live_project(), live_export(**ends)),
        base=base_of(pond("lake", "OLD", **ends), pond("lake-eu", "NEW")),
    ).effective
    assert change.body is not None
    assert change.body["end_at"] is None
    assert {note.use for note in change.secrets} == {SecretUse.REFERENCE_CHANGED}


# Removed fields and `${unset}`


@pytest.mark.parametrize(
    ("mentions", "after"),
    [
        (["set", "removed"], None),
        (["set", "unset"], "kept"),
        (["set", "unset", "removed"], "kept"),
        (["set", "removed", "unset"], "kept"),
        (["set", "unset", "set", "removed"], None),
    ],
)
def test_plan_d5_the_last_commit_that_mentions_a_field_decides(
    mentions: list[str], after: str | None
) -> None:
    ends = "2027-01-01T00:00:00Z"

    def at(mention: str) -> Desired:
        given = export(end_at=ends) if mention == "set" else export()
        return desired_of(WEB, replace(given, unset=(("end_at",),) if mention == "unset" else ()))

    *range_, now = map(at, mentions)
    plan = planned(now, live_of(live_project(), live_export(end_at=ends)), base=base_of(*range_))
    assert [change.body for change in plan.effective] == ([] if after else [{"end_at": None}])


def test_plan_d5_a_part_and_a_key_of_a_merged_object_are_left_to_the_service() -> None:
    place = s3(compression="gzip")
    was = desired_of(project(modifiers={"a": 1, "b": 2}), export(destination=place))
    shop = replace(project(modifiers={"b": 2}), unset=(("modifiers", "a"),))
    lake = replace(export(), unset=(("destination", "config"),))
    live = live_of(live_project(modifiers={"a": 1, "b": 2}), live_export(destination=place))
    assert planned(desired_of(shop, lake), live, base=base_of(was)).empty


@pytest.mark.parametrize(
    ("was", "live", "left"), [(True, True, ["paused"]), (True, False, []), (False, False, [])]
)
def test_plan_d6_paused_is_never_reset_and_the_plan_says_so(
    *, was: bool, live: bool, left: list[str]
) -> None:
    plan = planned(
        desired_of(WEB, export()),
        live_of(live_project(), live_export(paused=live)),
        base=base_of(desired_of(WEB, export(paused=was))),
    )
    assert plan.empty
    assert [text.split()[0] for text in messages(plan, "stays-as-it-is")] == left


def test_plan_d6_a_removed_secret_stays_and_the_plan_says_so() -> None:
    secret = {"aws_access_key_id": SecretRef.of("env", "ID")}
    plan = planned(
        desired_of(WEB, export()),
        live_of(live_project(), live_export()),
        base=base_of(desired_of(WEB, export(destination=s3(**secret)))),
    )
    assert plan.empty
    (message,) = messages(plan, "stays-as-it-is")
    assert message.startswith("destination.config.aws_access_key_id was removed")


# What is loosened


def loosened(base: Base | Desired, now: Desired, *live: LiveObject) -> list[str]:
    plan = planned(now, live_of(live_project(), *live), base=base)
    return messages(plan, "loosened")


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"protect": True}, {}, ["protection is removed: batch_export.pond"]),
        ({}, {"protect": True}, []),
        ({}, {"allow_replace": True}, ["`lifecycle.allow_replace` is new: batch_export.pond"]),
        (
            {"ignore_changes": ("name",)},
            {"ignore_changes": ("name", "destination")},
            ["`lifecycle.ignore_changes: 'destination'` is new: batch_export.pond"],
        ),
        (
            {},
            {"renamed_from": ("a\n", "b")},
            [
                "`lifecycle.renamed_from: 'a\\n'` is new: batch_export.pond",
                "`lifecycle.renamed_from: 'b'` is new: batch_export.pond",
            ],
        ),
    ],
)
def test_plan_o3_a_looser_resource_is_noted_by_live_object(
    was: dict[str, Any], now: dict[str, Any], expected: list[str]
) -> None:
    former = desired_of(WEB, export(lifecycle=Lifecycle(**was)))
    later = desired_of(WEB, export("pond", name="Lake", lifecycle=Lifecycle(**now)))
    assert loosened(former, later, live_export()) == expected
    # Also if it is in the range, and if only a commit of the range had the stricter one.
    assert loosened(base_of(former, later), later, live_export()) == expected
    before = desired_of(WEB, export(lifecycle=Lifecycle(**now)))
    assert loosened(base_of(before, former, later), later, live_export()) == expected


def test_plan_o3_a_new_pin_is_noted_and_many_are_one_line() -> None:
    keys = [f"e{number:02}" for number in range(30)]
    former = desired_of(WEB, *(export(key, lifecycle=Lifecycle(protect=True)) for key in keys))
    now = desired_of(WEB, *(export(key) for key in keys[1:]), export("e00", pinned_id="e00"))
    live = [live_export(key, key.title()) for key in keys]
    pin, protection = sorted(loosened(former, now, *live))
    assert pin == "`id: e00` is new: batch_export.e00"
    assert protection.startswith("protection is removed: batch_export.e00, ")
    assert protection.endswith(" and 20 more")


def test_plan_o3_a_new_resource_loosens_nothing() -> None:
    given = Lifecycle(allow_replace=True, ignore_changes=("name",))
    assert loosened(desired_of(WEB), desired_of(WEB, export(lifecycle=given))) == []


POLICY = {
    "max_deletes": 3,
    "deny": ["history-lost"],
    "ignore": ["PG*"],
    "prune": "git",
    "rules": {"r": {"match": {"action": "delete"}, "message": "m"}},
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"max_deletes": 4}, ["max_deletes"]),
        ({"max_deletes": 2, "max_changes": 5, "deny": ["history-lost", "x"]}, []),
        ({"deny": []}, ["deny"]),
        ({"ignore": []}, ["ignore"]),
        ({"attempt": ["x"]}, ["attempt"]),
        ({"allow_exec_secrets": True}, ["allow_exec_secrets"]),
        ({"allow_literal_secrets": True}, ["allow_literal_secrets"]),
        ({"prune": True}, ["prune"]),
        ({"prune": {"batch_export": "git"}}, []),
        ({"prune": {"*": "git", "project.web": True}}, ["prune"]),
        ({"prune": {"*": "git", "project.web": False}}, []),
        ({"rules": {}}, ["rules"]),
        ({"rules": {**POLICY["rules"], "s": POLICY["rules"]["r"]}}, []),  # type: ignore[dict-item, index]
        ({"allow_project_deletion": True}, ["deletion of project"]),
    ],
)
def test_plan_o3_a_looser_policy_is_noted(change: dict[str, Any], expected: list[str]) -> None:
    was, now = (
        policy_of(Workspace(Document("f"), {"policy": policy}), "default")
        for policy in (POLICY, {**POLICY, **change})
    )
    texts = loosened(
        replace(desired_of(WEB), policy=was, readable=Readable()),
        replace(desired_of(WEB), policy=now, readable=Readable()),
    )
    assert texts == [f"`policy` is looser: {key}" for key in expected]


def test_plan_o3_longer_lists_are_noted() -> None:
    was = Readable(env=frozenset({"A"}), secrets=frozenset({"S"}), secret_files=("/a",))
    now = Readable(env=frozenset({"A", "B"}), secrets=frozenset({"T"}), secret_files=("/a", "/"))
    assert loosened(
        replace(desired_of(WEB), policy=Policy(), readable=was),
        replace(desired_of(WEB), policy=Policy(), readable=now),
    ) == ["`env: ['B']` is new", "`secrets: ['T']` is new", "`secret_files: ['/']` is new"]


# What is adopted


def test_an_adopted_object_is_noted_once_for_all_and_by_itself() -> None:
    now = desired_of(WEB, export(), export("pond", interval="day"), export("sea"))
    live = live_of(live_project(), live_export(), live_export("e2", "Pond"))
    plan = planned(now, live, base=desired_of(WEB))
    assert [(note.about, note.message) for note in plan.notes if note.code == "adopted"] == [
        (None, "2 live objects managed now and not at the git base (list: --verbose)"),
        (Address("batch_export", "lake"), "not managed at the git base"),
        (Address("batch_export", "pond"), "not managed at the git base"),
    ]
    assert not messages(planned(now, live), "adopted")
    # A rename that was applied since the base is no adoption.
    renamed = base_of(desired_of(WEB, export(name="Old"), export("pond")), now)
    assert not messages(planned(now, live, base=renamed), "adopted")
    assert not messages(planned(now, live, base=now), "adopted")
