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


def messages(plan: Plan, code: str) -> list[str]:
    return [note.message for note in plan.notes if note.code == code]


# Removed fields and `${unset}`


def test_plan_d5_a_part_and_a_key_of_a_merged_object_are_left_to_the_service() -> None:
    place = s3(compression="gzip")
    was = desired_of(project(modifiers={"a": 1, "b": 2}), export(destination=place))
    shop = replace(project(modifiers={"b": 2}), unset=(("modifiers", "a"),))
    lake = replace(export(), unset=(("destination", "config"),))
    live = live_of(live_project(modifiers={"a": 1, "b": 2}), live_export(destination=place))
    assert planned(desired_of(shop, lake), live, base=was).empty


IPS, HOOK = "anonymize_ips", "slack_incoming_webhook"
TWO = {"a": 1, "b": 2}
NEW_KEY = {"maskAllInputs": True, "new": "token"}


@pytest.mark.parametrize(
    ("field", "was", "unset", "live", "expected"),
    [
        (IPS, True, IPS, True, "it keeps true"),
        ("recording_domains", ["a"], "recording_domains", ["b"], 'it keeps ["b"]'),
        ("modifiers", TWO, "modifiers.a", TWO, "it keeps 1"),
        ("access_control", True, "access_control", False, "it keeps false"),
        (MASKS, {"maskAllInputs": True}, MASKS, NEW_KEY, 'it keeps {"maskAllInputs":true}'),
        (HOOK, SecretRef.of("env", "HOOK"), HOOK, "https://a", KEEPS_SECRET),
        (IPS, None, IPS, True, None),
    ],
)
def test_r8_what_is_no_longer_managed_is_named_with_its_value(
    field: str, was: Any, unset: str, live: Any, expected: str | None
) -> None:
    now = replace(project(), unset=(tuple(unset.split(".")),))
    base = desired_of(project(**({} if was is None else {field: was})))
    plan = planned(desired_of(now), live_of(live_project(**{field: live})), base=base)
    said = f"{unset} is no longer managed (`${{unset}}`): {expected}"
    assert messages(plan, "unmanaged-field") == ([said] if expected else [])


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


def test_plan_o3_a_new_pin_is_noted_and_many_are_one_line() -> None:
    keys = [f"e{number:02}" for number in range(30)]
    former = desired_of(WEB, *(export(key, lifecycle=Lifecycle(protect=True)) for key in keys))
    now = desired_of(WEB, *(export(key) for key in keys[1:]), export("e00", pinned_id="e00"))
    live = [live_export(key, key.title()) for key in keys]
    pin, protection = sorted(loosened(former, now, *live))
    assert pin == "`id: e00` is new: batch_export.e00"
    assert protection.startswith("protection is removed: batch_export.e00, ")
    assert protection.endswith(" and 20 more")


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
