"""Rules over the changes of any plan: evaluation never fails, and a saved plan gives the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.decoding import decode
from reconciler.model.live import Live
from reconciler.model.plan import encode
from reconciler.model.policy import PlanOptions, rules_of
from reconciler.model.resource import Desired
from reconciler.planning.rules import breaches
from tests.support.worlds import KINDS, planned, worlds

TEXTS = st.sampled_from(
    ["*", "web", "batch_export", "create", "S3", "[", "history-*", "*.config.*"]
)
GLOBS = TEXTS | st.lists(TEXTS, max_size=2)
VALUES = st.none() | st.booleans() | st.integers(0, 2) | TEXTS
TESTS = st.fixed_dictionaries(
    {}, optional={"equals": VALUES, "in": st.lists(VALUES, max_size=2), "matches": GLOBS}
)
FIELDS = st.fixed_dictionaries({"path": GLOBS}, optional={"before": TESTS, "after": TESTS})
NAMES = ("kind", "action", "address", "name", "project", "destination", "consequence", "severity")
LEAVES = st.fixed_dictionaries({}, optional={**dict.fromkeys(NAMES, GLOBS), "field": FIELDS})


def _nested(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inside, max_size=2)
    return st.fixed_dictionaries({}, optional={"all": several, "any": several, "not": inside})


MATCHES = st.recursive(LEAVES, _nested, max_leaves=4)
JUNK = st.recursive(VALUES, lambda inside: st.dictionaries(TEXTS, inside, max_size=2))


@given(worlds(), MATCHES, st.integers(0, 2))
def test_a_saved_plan_breaks_the_same_rules(
    world: tuple[Desired, Live], match: Any, more_than: int
) -> None:
    plan = planned(*world, options=PlanOptions(rotate=("*",)))
    written = {"a": {"match": match, "message": "m", "more_than": more_than}}
    rules = [*rules_of(written), *rules_of({"b": {"match": {"not": match}, "message": "m"}})]
    broken = tuple(breaches(rules, plan.changes, KINDS))
    assert broken == tuple(breaches(rules, decode(encode(plan)).changes, KINDS))
    matching = {breach.rule.id: len(breach.changes) for breach in broken}
    if more_than == 0:
        assert matching.get("a", 0) + matching.get("b", 0) == len(plan.effective)


@given(worlds(), st.dictionaries(TEXTS | st.sampled_from(NAMES), JUNK))
def test_what_no_schema_accepts_raises_nothing(world: tuple[Desired, Live], match: Any) -> None:
    plan = planned(*world)
    tuple(breaches(rules_of({"a": {"match": match}}), plan.changes, KINDS))
