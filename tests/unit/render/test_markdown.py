"""Test the comment for a pull request."""

from __future__ import annotations

import re

from reconciler.model.resource import State
from reconciler.render.formats.markdown import LIMIT, plan_as_markdown
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)


def test_a_plan_of_three_thousand_changes_fits_and_starts_with_deletions() -> None:
    created = [export(f"new-{number}") for number in range(3_000)]
    gone = [export(f"gone-{number}", state=State.ABSENT) for number in range(3)]
    live = live_of(live_project(), *(live_export(f"id{n}", f"Gone-{n}") for n in range(3)))
    text = plan_as_markdown(planned(desired_of(project(), *created, *gone), live))
    assert len(text) <= LIMIT
    rows = re.findall(r"^\| (.*?) \| (.) (\w+) \|", text, re.MULTILINE)
    assert [row[2] for row in rows[:4]] == ["delete", "delete", "delete", "create"]
    assert "more changes not in this table" in text
    assert re.search(r"\d+ changes not shown", text)
    assert "3000 to create" in text


def test_names_cannot_become_markup() -> None:
    forged = "| x | <script> ![a](b) @team `c` \n# title"
    text = plan_as_markdown(planned(desired_of(project(), export(name=forged)), live_of()))
    outside = re.sub(r"```.*?```|<code>.*?</code>", "", text, flags=re.DOTALL)
    assert "<script>" not in outside
    assert "![a](b)" not in outside
    assert "@team" not in outside
    assert "\n# title" not in text
