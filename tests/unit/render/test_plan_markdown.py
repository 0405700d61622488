"""Test the comment for a pull request."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.plan import Note, Refusal
from reconciler.model.text import safe_output
from reconciler.render.options import COMMENT_LIMIT, RenderOptions
from reconciler.render.plan_markdown import plan_as_markdown, plans_as_markdown
from tests.support.worlds import (
    desired_of,
    export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)
from tests.unit.render.plans import exports


@pytest.mark.parametrize(
    ("page", "way"),
    [
        ("", "`reconciler show --verbose FILE` prints the whole plan."),
        ("https://x.example/7", "prints the whole plan, [the job](https://x.example/7) has the"),
    ],
)
def test_experience_12_a_comment_that_is_cut_counts_the_rest_and_says_where_it_is(
    page: str, way: str
) -> None:
    plan = exports(400, lambda number: {"sql_query": f"SELECT {number}"}, {}, key="x-{}")
    text = plan_as_markdown(plan, RenderOptions(page=page))
    assert len(text) <= 20_000
    shown = len(re.findall(r"^\| ~ ", text, re.MULTILINE))
    assert f"- {400 - shown:,} more to update: x-" in text
    assert way in text


def test_the_name_of_an_environment_cannot_end_the_marker() -> None:
    plan = planned(desired_of(project()), live_of())
    forged = replace(plan, source=replace(plan.source, environment="a --> <script>"))
    text = plan_as_markdown(forged, RenderOptions(cost="4 calls, about 1 s"))
    assert text.startswith("<!-- reconciler: a __ _script_ -->\n")
    assert text.split("\n")[3].endswith("4 calls, about 1 s")


def test_backticks_of_names_cannot_end_code() -> None:
    desired = desired_of(project(), export(name="a'`b``c`\"`d"), export("pond", name="``'\"|x`y`z"))
    text = plan_as_markdown(planned(desired, live_of(live_project())))
    for line in re.sub(
        r"<summary>.*|^`{3,}.*?^`{3,}", "", text, flags=re.DOTALL | re.MULTILINE
    ).split("\n"):
        assert line.count("`") % 2 == 0
        assert "``" not in line


def test_security_8_a_comment_with_broken_commands_is_within_the_limit() -> None:
    """A longer one is refused, and the comment of an earlier commit would stay."""
    plan = exports(150, lambda n: {"destination": s3(prefix=f"e{n}{'##[' * 150}")}, {})
    printed = safe_output(plan_as_markdown(plan))
    assert 18_000 < len(printed) <= 20_000
    several = [OfEnvironment(name, plan) for name in ("a", "b", "c", "d")]
    assert 50_000 < len(safe_output(plans_as_markdown(several))) <= COMMENT_LIMIT


def test_all_violations_and_all_that_is_loosened_are_shown() -> None:
    """Only dangers and new places are counted when they are many."""
    plan = planned(desired_of(project(timezone="Asia/Tokyo")), live_of(live_project()))
    refusals = tuple(Refusal("rule", f"violation {number}.") for number in range(25))
    notes = tuple(Note("loosened", f"`setting-{number}` is new") for number in range(25))
    text = plan_as_markdown(replace(plan, refusals=refusals, notes=notes))
    assert all(f"violation {number}." in text for number in range(25))
    assert all(f"setting-{number}`" in text for number in range(25))
