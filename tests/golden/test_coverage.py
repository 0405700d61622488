"""The cases reach every rule, reason and guard that there is."""

from __future__ import annotations

import re

from reconciler.model.change import Action, Origin, Reason, SecretUse
from reconciler.model.codec.plan import decode
from tests.conftest import ROOT
from tests.golden.test_plans import CASES

PLANS = [
    decode((case / "expected/plan.json").read_bytes())
    for case in CASES
    if (case / "expected/plan.json").exists()
]
CHANGES = [change for plan in PLANS for change in plan.changes]


def test_every_consequence_has_a_case() -> None:
    documented = re.findall(
        r"^\| `([\w-]+)`", (ROOT / "docs/consequences.md").read_text(), re.MULTILINE
    )
    seen = {each.rule for change in CHANGES for each in change.consequences}
    assert seen == set(documented)


def test_every_reason_action_origin_and_use_of_a_secret_has_a_case() -> None:
    assert {reason for change in CHANGES for reason in change.reasons} == set(Reason)
    assert {change.action for change in CHANGES} == set(Action)
    assert {each.origin for change in CHANGES for each in change.fields} == set(Origin)
    assert {note.use for change in CHANGES for note in change.secrets} == set(SecretUse)


def test_every_guard_has_a_case() -> None:
    seen = {refusal.rule for plan in PLANS for refusal in plan.refusals}
    source = (ROOT / "reconciler/planning/guards.py").read_text()
    named = set(re.findall(r'Refusal\(\s*"([\w-]+)"', source)) - {"unlisted-type"}
    assert named | {"max_deletes", "max_changes", "allow_project_deletion"} <= seen
