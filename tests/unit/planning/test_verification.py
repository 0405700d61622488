"""I10: the second plan judges the changes of the run, and nothing else."""

from __future__ import annotations

import pytest

from reconciler.commands.apply.changes import Verification
from reconciler.errors import ReconcilerError
from reconciler.render.plan_text import unverified_as_text
from tests.unit.planning.test_approval import deletion, plan_of

OWN, OTHER = deletion("a", "A"), deletion("b", "B")


@pytest.mark.parametrize(
    ("verification", "passed", "begins"),
    [
        (Verification(), None, ""),
        (Verification(error=ReconcilerError("no answer")), False, ""),
        (Verification(plan_of()), True, ""),
        (Verification(plan_of(OTHER, OWN)), False, "error: the plan after apply is not empty"),
        (Verification(plan_of(OTHER)), True, "note: the plan after apply has 1 other change"),
    ],
)
def test_i10_the_second_plan_judges_the_run(
    verification: Verification, passed: bool | None, begins: str
) -> None:
    judged = Verification(verification.left, verification.error, frozenset({OWN.address}))
    assert judged.passed is passed
    text = unverified_as_text(judged.left, passed=passed is True)
    assert text.startswith(begins)
    assert bool(text) is bool(begins)
