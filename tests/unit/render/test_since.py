"""A plan says what changed since the one that an earlier comment showed."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from reconciler.model.plan import Plan
from reconciler.model.policy import Policy, Prune
from reconciler.model.resource import Resource
from reconciler.render.options import DEFAULTS
from reconciler.render.plan_markdown import changed_since, hidden_line, plan_as_markdown
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    with_secrets,
)

LIVE = live_of(live_project(), live_export(), live_export("e2", "River"))
KEPT = (export(), export("river"))


def plan_of(*resources: Resource, prune: bool = False) -> Plan:
    policy = Policy(prune={"*": Prune.UNMANAGED}) if prune else Policy()
    return planned(desired_of(project(), *resources), LIVE, policy)


def since(former: Plan, now: Plan) -> str | None:
    return changed_since(now, "", plan_as_markdown(former))


def comment(plan: Plan, shown: str) -> str:
    return plan_as_markdown(plan, replace(DEFAULTS, since=shown))


def test_a_comment_says_what_changed_since_the_last_one() -> None:
    first = plan_of(*KEPT, export("new"), export("newer"))
    second = plan_of(export(interval="day"), export("river", interval="day"), export("new"))
    text = comment(second, plan_as_markdown(first))
    assert "\nSince the last comment: 2 more to update, 1 fewer to create.\n" in text
    # It is below the headline, and all else is as without it.
    title, _, line = text.split("\n\n")[:3]
    assert (title.splitlines()[-1][:4], line[:5]) == ("### ", "Since")
    assert text.replace(f"{line}\n\n", "") == plan_as_markdown(second)
    assert "Since the last comment: no change.\n" in comment(second, text)


def test_dangers_and_other_values_are_counted() -> None:
    calm = plan_of(export(interval="day"), export("river", interval="day"))
    other = plan_of(export(interval="week"), export("river", interval="day"))
    assert since(calm, other) == "1 with other values"
    deleting = plan_of(export(interval="day"), prune=True)
    assert since(calm, deleting) == "1 more to delete, 1 fewer to update, 1 new danger"
    assert since(deleting, calm) == "1 more to update, 1 fewer to delete, 1 former danger"


def test_the_last_plan_of_the_environment_and_workspace_counts() -> None:
    first, second = plan_of(*KEPT, export("new")), plan_of(*KEPT)
    other = replace(first, source=replace(first.source, environment="production"))
    texts = [plan_as_markdown(plan) for plan in (first, second, other)]
    assert changed_since(second, "", "".join(texts)) == ""
    assert changed_since(first, "", "".join(texts)) == "1 more to create"
    assert changed_since(first, "teams/a", "".join(texts)) is None
    assert changed_since(first, "teams/a", hidden_line(second, "teams/a")) == "1 more to create"


@pytest.mark.parametrize("text", ["", "<!-- reconciler plan -->", "\0", "<!-- reconciler plan 1 2"])
def test_without_a_former_plan_nothing_is_claimed(text: str) -> None:
    plan = plan_of(*KEPT)
    assert changed_since(plan, "", text) is None
    assert comment(plan, text) == plan_as_markdown(plan)


def test_a_forged_line_only_changes_the_sentence() -> None:
    plan = plan_of(export(interval="day"), prune=True)
    head = hidden_line(plan, "").removesuffix(" -->")
    forged = (
        f"{head} evil.00000000.00000000 x.y update.zz <b> -->\n{head} evil.00000000.00000000 -->"
    )
    for shown in (plan_as_markdown(plan), forged, head + " -->" * 3):
        text = comment(plan, shown)
        assert re.sub(r"Since the last comment: .*\.\n\n", "", text) == plan_as_markdown(plan)
        assert "evil" not in text
    assert changed_since(plan, "", f"{head}{' a.0' * 100_000}") is None


def test_the_line_has_hashes_only_and_a_bounded_size() -> None:
    exports = [export(f"e{n}", destination=with_secrets(prefix="private")) for n in range(700)]
    few, many = plan_of(*KEPT, *exports[:600]), plan_of(*KEPT, *exports)
    line = hidden_line(few, "")
    assert re.fullmatch(
        r"<!-- reconciler plan [0-9a-f]{8}( create(\.[0-9a-f]{8}){2}){600} -->", line
    )
    assert line in plan_as_markdown(few)
    assert hidden_line(many, "") not in plan_as_markdown(many)
    assert len(plan_as_markdown(many)) <= DEFAULTS.limit
    assert since(many, few) is None
