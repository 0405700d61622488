"""Rules over the changes of any plan: evaluation never fails, and a saved plan gives the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.decoding import decode
from reconciler.model.live import Live
from reconciler.model.plan import encode
from reconciler.model.resource import Desired
from reconciler.model.settings import PlanOptions, Policy, rules_of
from reconciler.planning.guards import breaches
from tests.support.worlds import KINDS, planned, worlds

TEXTS = st.sampled_from(
    ["*", "web", "batch_export", "create", "S3", "[", "history-*", "*.config.*", "!web", "!*"]
)
GLOBS = TEXTS | st.lists(TEXTS, max_size=2)
VALUES = st.none() | st.booleans() | st.integers(0, 2) | TEXTS
NAMES = (
    "kind",
    "action",
    "address",
    "name",
    "project",
    "destination",
    "consequence",
    "severity",
    "field",
)
MATCHES = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, GLOBS))
JUNK = st.recursive(VALUES, lambda inside: st.dictionaries(TEXTS, inside, max_size=2))


@given(worlds(), MATCHES)
def test_a_saved_plan_breaks_the_same_rules(world: tuple[Desired, Live], match: Any) -> None:
    plan = planned(*world, options=PlanOptions(rotate=("*",)))
    policy = Policy(rules=rules_of({"a": {"match": match, "message": "m"}}))
    broken = tuple(breaches(policy, plan.changes, KINDS))
    assert broken == tuple(breaches(policy, decode(encode(plan)).changes, KINDS))


@given(worlds(), st.dictionaries(TEXTS | st.sampled_from(NAMES), JUNK))
def test_what_no_schema_accepts_raises_nothing(world: tuple[Desired, Live], match: Any) -> None:
    plan = planned(*world)
    tuple(breaches(Policy(rules=rules_of({"a": {"match": match}})), plan.changes, KINDS))
