"""What a plan notes since the apply: fields that stay, and loosened settings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.files.workspace_file import Workspace, policy_of
from reconciler.files.yaml_document import Document
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Lifecycle
from reconciler.model.settings import Policy, Readable
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
MASKS = "session_recording_masking_config"
KEEPS_SECRET = "it keeps its live value; write null to clear it"


def origins(plan: Plan) -> dict[str, str]:
    return {
        ".".join(map(str, field.path)): field.origin.value
        for change in plan.effective
        for field in change.fields
    }


def messages(plan: Plan, code: str) -> list[str]:
    return [note.message for note in plan.notes if note.code == code]


# The origin of a field


# Removed fields and `${unset}`


def test_plan_d5_a_part_and_a_key_of_a_merged_object_are_left_to_the_service() -> None:
    place = s3(compression="gzip")
    was = desired_of(project(modifiers={"a": 1, "b": 2}), export(destination=place))
    shop = replace(project(modifiers={"b": 2}), unset=(("modifiers", "a"),))
    lake = replace(export(), unset=(("destination", "config"),))
    live = live_of(live_project(modifiers={"a": 1, "b": 2}), live_export(destination=place))
    assert planned(desired_of(shop, lake), live, base=was).empty


@pytest.mark.parametrize(
    ("was", "live", "left"), [(True, True, ["paused"]), (True, False, []), (False, False, [])]
)
def test_plan_d6_paused_is_never_reset_and_the_plan_says_so(
    *, was: bool, live: bool, left: list[str]
) -> None:
    plan = planned(
        desired_of(WEB, export()),
        live_of(live_project(), live_export(paused=live)),
        base=desired_of(WEB, export(paused=was)),
    )
    assert plan.empty
    assert [text.split()[0] for text in messages(plan, "stays-as-it-is")] == left


def test_plan_d6_a_removed_secret_stays_and_the_plan_says_so() -> None:
    secret = {"aws_access_key_id": SecretRef.of("env", "ID")}
    plan = planned(
        desired_of(WEB, export()),
        live_of(live_project(), live_export()),
        base=desired_of(WEB, export(destination=s3(**secret))),
    )
    assert plan.empty
    (message,) = messages(plan, "stays-as-it-is")
    assert message.startswith("destination.config.aws_access_key_id was removed")


@pytest.mark.parametrize(
    ("was", "unset", "live", "code", "expected"),
    [
        (
            *({"anonymize_ips": True}, (), True, "stays-as-it-is"),
            "anonymize_ips was removed from the configuration, but is not reset: it keeps true",
        ),
        (
            *({"anonymize_ips": True}, ("anonymize_ips",), True, "unmanaged-field"),
            "anonymize_ips is no longer managed (`${unset}`): it keeps true",
        ),
        (
            *({"recording_domains": ["https://a"]}, ("recording_domains",), ["https://b"]),
            "unmanaged-field",
            'recording_domains is no longer managed (`${unset}`): it keeps ["https://b"]',
        ),
        (
            *({"modifiers": {"a": 1, "b": 2}}, ("modifiers", "a"), {"a": 1, "b": 2}),
            *("unmanaged-field", "modifiers.a is no longer managed (`${unset}`): it keeps 1"),
        ),
        (
            *({"access_control": True}, ("access_control",), False, "unmanaged-field"),
            "access_control is no longer managed (`${unset}`): it keeps false",
        ),
        (
            *({MASKS: {"maskAllInputs": True}}, (MASKS,), {"maskAllInputs": True, "new": "token"}),
            "unmanaged-field",
            f'{MASKS} is no longer managed (`${{unset}}`): it keeps {{"maskAllInputs":true}}',
        ),
        (
            {"slack_incoming_webhook": SecretRef.of("env", "HOOK")},
            *(("slack_incoming_webhook",), "https://hooks.example/x", "unmanaged-field"),
            f"slack_incoming_webhook is no longer managed (`${{unset}}`): {KEEPS_SECRET}",
        ),
        ({}, ("anonymize_ips",), True, "unmanaged-field", None),
    ],
)
def test_r8_what_is_no_longer_managed_is_named_with_its_value(
    was: dict[str, Any], unset: tuple[str, ...], live: Any, code: str, expected: str | None
) -> None:
    field = next(iter(was), "anonymize_ips")
    now = replace(project(), unset=(unset,) if unset else ())
    at_service = live_of(live_project(**{field: live}))
    plan = planned(desired_of(now), at_service, base=desired_of(project(**was)))
    assert messages(plan, code) == ([expected] if expected is not None else [])


def test_r8_what_is_set_again_above_is_managed() -> None:
    """`${unset}` of a lower layer leaves nothing to the service."""
    web = replace(project(anonymize_ips=True), unset=(("anonymize_ips",),))
    live = live_of(live_project(anonymize_ips=True))
    plan = planned(desired_of(web), live, base=desired_of(project(anonymize_ips=False)))
    assert messages(plan, "unmanaged-field") == []


# What is loosened


def loosened(base: Desired, now: Desired, *live: LiveObject) -> list[str]:
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
    "prune": False,
    "rules": {"r": {"match": {"action": "delete"}, "message": "m"}},
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"max_deletes": 4}, ["max_deletes"]),
        ({"max_deletes": 2, "max_changes": 5, "deny": ["history-lost", "x"]}, []),
        ({"deny": []}, ["deny (history-lost)"]),
        ({"ignore": []}, ["ignore (PG*)"]),
        ({"attempt": ["x"]}, ["attempt (x)"]),
        ({"allow_exec_secrets": True}, ["allow_exec_secrets"]),
        ({"allow_literal_secrets": True}, ["allow_literal_secrets"]),
        ({"prune": True}, ["prune"]),
        ({"rules": {}}, ["rules (r)"]),
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
