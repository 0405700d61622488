"""Test the branch of the head and the latest runs of exports in plans."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.decoding import decode
from reconciler.model.kind import Action
from reconciler.model.plan import Plan, RecentRun, encode
from reconciler.model.redaction import masked_in
from reconciler.model.resource import State
from reconciler.model.text import is_breaking
from reconciler.render import formats_of, writer_of
from reconciler.render.html import plan_as_html
from reconciler.render.options import COMMENT_LIMIT, DEFAULTS
from reconciler.render.plan_markdown import plan_as_markdown
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
from tests.unit.render.test_plan_html import HOSTILE, Page

BRANCHES = [
    HOSTILE,
    "x -->|@team #1 `a` https://x.example",
    "::error::x\n##[error]y",
    "\u202e\x1b[",
]
RUN = {"status": "Completed", "data_interval_end": "2026-06-01T11:00:00Z"}
FAILED = {"status": "Failed", "data_interval_end": None, "latest_error": "key AKIA1 is wrong"}


def runs(*bodies: Any) -> Any:
    return [
        {"id": str(number), **body} if isinstance(body, dict) else body
        for number, body in enumerate(bodies)
    ]


def updated(*bodies: Any) -> Plan:
    live = live_of(live_project(), live_export(latest_runs=runs(*bodies)))
    return planned(desired_of(project(), export(interval="day")), live)


def with_head(plan: Plan, branch: str | None) -> Plan:
    source = replace(plan.source, applied="c0ffee0123", head="9f8e7d6543", head_ref=branch)
    return replace(plan, source=source)


def test_the_comment_and_the_page_show_the_branch_of_the_head() -> None:
    plan = with_head(updated(), "feature")
    comment = plan_as_markdown(plan)
    base = "c0ffee0: 0 of 2 resources"
    assert f"{base} → feature&#64;&#8203;9f8e7d6 · plan " in comment
    assert f"{base} → feature@9f8e7d6 · plan " in Page(plan_as_html(plan)).text
    assert f"{base} → 9f8e7d6 · plan " in plan_as_markdown(with_head(plan, None))
    assert with_head(plan, "other").plan_id == plan.plan_id


@pytest.mark.parametrize("output_format", formats_of("plan"))
@pytest.mark.parametrize("branch", BRANCHES)
def test_security_8_a_branch_is_text(branch: str, output_format: str) -> None:
    def written(branch: str) -> str:
        plan = decode(encode(with_head(updated(), branch)))
        return writer_of(output_format, "plan")(plan, DEFAULTS)

    text = written(branch)
    assert {character for character in text if is_breaking(character)} <= {"\n"}
    assert text.count("\n") == written("feature").count("\n")
    assert not re.search(r"##\w*\[", text)
    assert not re.search(r"^\s*::error::x", text, re.MULTILINE)
    if output_format == "html":
        assert [tag for tag, _ in Page(text).elements].count("script") == 1
    if output_format == "markdown":
        line = text.split("\n")[3]
        assert not re.search(r"[<>|`]|@\w|#\d|://", line.replace("&#", ""))


def test_a_change_has_the_latest_runs_that_can_be_read() -> None:
    malformed = ["x", {"status": 3}, {"data_interval_end": "yesterday"}]
    (change,) = updated(RUN, *malformed, FAILED).effective
    assert change.runs == (RecentRun("Completed", "2026-06-01T11:00:00Z"), RecentRun("Failed", ""))
    assert len(updated(*[RUN] * 30).effective[0].runs) == 10
    for other in (None, "x", {}):
        live = live_of(live_project(), live_export(latest_runs=other))
        plan = planned(desired_of(project(), export(interval="day")), live)
        assert plan.effective[0].runs == ()


def test_runs_are_in_the_plan_file_and_not_in_its_id() -> None:
    plan = updated(RUN, FAILED)
    assert decode(encode(plan)) == replace(plan, changes=plan.effective)
    assert plan.plan_id == updated().plan_id
    assert b'"runs"' not in encode(updated())
    assert b"AKIA1" not in encode(plan)
    masked = masked_in(plan, lambda text: text.replace("Failed", "***"))
    assert [run.status for run in masked.effective[0].runs] == ["Completed", "***"]


def test_the_page_has_a_strip_of_the_latest_runs() -> None:
    page = Page(plan_as_html(updated(FAILED, RUN, RUN)))
    labels = [item["aria-label"] for tag, item in page.elements if tag == "svg"]
    assert labels == ["3 latest runs, 1 failed"]
    blocks = [item["class"] for tag, item in page.elements if tag == "rect"]
    assert blocks == ["good", "good", "bad"]
    assert "Completed 2026-06-01 11:00 UTC" in page.text
    assert "last run Failed · 1 of 3 failed" in page.text
    assert [tag for tag, _ in Page(plan_as_html(updated())).elements].count("svg") == 0


def test_a_group_has_the_runs_of_its_members() -> None:
    keys = [f"e{number}" for number in range(3)]
    live = live_of(
        live_project(), *(live_export(key, key.title(), latest_runs=runs(RUN)) for key in keys)
    )
    desired = desired_of(project(), *(export(key, interval="day") for key in keys))
    page = Page(plan_as_html(planned(desired, live)))
    assert [tag for tag, _ in page.elements].count("svg") == 3


def test_security_8_the_status_of_a_run_is_text() -> None:
    plan = updated({**RUN, "status": HOSTILE}, {**RUN, "status": "::error::x ##[y]\n\x1b[2J"})
    change = replace(plan.effective[0], runs=(RecentRun(HOSTILE, HOSTILE), RecentRun("\u202e", "")))
    for hostile in (plan, replace(plan, changes=(change,))):
        text = plan_as_html(decode(encode(hostile)))
        assert [tag for tag, _ in Page(text).elements].count("script") == 1
        assert "\u202e" not in text
        assert "##[" not in text


def test_budgets_hold_for_two_thousand_changes_with_a_branch_and_runs() -> None:
    keys = [f"e{number}" for number in range(2_000)]
    live = live_of(
        live_project(),
        *(live_export(key, key.title(), latest_runs=runs(*[RUN] * 10)) for key in keys),
    )
    wanted = [export(key, destination=s3(prefix=f"{key}/")) for key in keys]
    wanted[7] = export(keys[7], state=State.ABSENT)
    plan = with_head(planned(desired_of(project(), *wanted), live), "b" * 80)
    assert plan.counts[Action.UPDATE] == 1_999
    comment = plan_as_markdown(plan)
    assert len(comment) <= COMMENT_LIMIT
    assert '`delete batch_export.e7 "E7" in Web`: ' in comment
    summary = plan_as_markdown(plan, replace(DEFAULTS, limit=1_024 * 1_024))
    assert len(summary) <= 1_024 * 1_024
    annotations = writer_of("github", "plan")(plan, DEFAULTS)
    commands = re.findall(r"^::(\w+) ", annotations, re.MULTILINE)
    assert {kind: commands.count(kind) for kind in set(commands)} == {"warning": 3}
