"""The golden plans reach every rule, reason, action and guard."""

from __future__ import annotations

import re

import pytest

from reconciler.model.decoding import decode
from reconciler.model.kind import Action
from reconciler.model.plan import Origin, Plan, Reason, SecretUse
from tests.conftest import ROOT
from tests.golden.test_plans import CASES, plan_of


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return [plan_of(case) for case in CASES]


def test_every_consequence_and_known_refusal_has_a_case(plans: list[Plan]) -> None:
    documented = re.findall(
        r"^\*\*`([\w-]+)`\*\*", (ROOT / "docs/consequences.md").read_text(), re.MULTILINE
    )
    planned = {
        consequence.rule
        for plan in plans
        for change in plan.changes
        for consequence in change.consequences
    }
    planned |= {refusal.rule for plan in plans for refusal in plan.refusals} & set(documented)
    assert planned == set(documented)


def test_every_reason_action_origin_and_secret_use_has_a_case(plans: list[Plan]) -> None:
    changes = [change for plan in plans for change in plan.changes]
    assert {reason for change in changes for reason in change.reasons} == set(Reason)
    assert {change.action for change in changes} == set(Action)
    assert {field.origin for change in changes for field in change.fields} == set(Origin)
    assert {note.use for change in changes for note in change.secrets} == set(SecretUse)


def test_every_action_has_a_plan_in_json() -> None:
    stored = [decode(path.read_bytes()) for path in (CASES[0].parent).glob("*/expected/plan.json")]
    made = {change.action for plan in stored for change in plan.changes}
    assert made == set(Action) - {Action.NO_OP}


def test_texts_that_a_group_shares_fit_one_object_and_several(plans: list[Plan]) -> None:
    changes = [change for plan in plans for change in plan.changes]
    texts = {item.message for change in changes for item in change.consequences}
    texts |= {item.reason for plan in plans for item in plan.leaving}
    singular = re.compile(r"\b(its|it is|it was|the (new )?(export|project))\b")
    assert not list(filter(singular.search, sorted(texts)))


def test_every_guard_has_a_case(plans: list[Plan]) -> None:
    refused = {refusal.rule for plan in plans for refusal in plan.refusals}
    source = (ROOT / "reconciler/planning/guards.py").read_text()
    without_a_case = {"unlisted-type", "prune"}
    named = set(re.findall(r'[Rr]efusal\((?:draft, |\s*)"([\w-]+)"', source)) - without_a_case
    assert named | {"max_deletes", "max_changes", "allow_project_deletion"} <= refused
