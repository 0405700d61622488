"""Test plans and states of exports as HTML pages, with the latest runs."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.decoding import decode
from reconciler.model.plan import Plan, RecentRun, Refusal, encode
from reconciler.model.redaction import masked_in
from reconciler.model.settings import Limit, Policy
from reconciler.model.text import is_breaking, printable
from reconciler.render import formats_of, writer_of
from reconciler.render.html import plan_as_html
from reconciler.render.options import DEFAULTS, RenderOptions
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

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(1)> ##[error]x & '"
BRANCHES = [
    HOSTILE,
    "x -->|@team #1 `a` https://x.example",
    "::error::x\n##[error]y",
    "\u202e\x1b[",
]
RUN = {"status": "Completed", "data_interval_end": "2026-06-01T11:00:00Z"}
FAILED = {"status": "Failed", "data_interval_end": None, "latest_error": "key AKIA1 is wrong"}
_VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """The elements and the text of a page. Fails if the elements are not nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def entries(self) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if "data-state" in attributes]

    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]


def assert_closed(html: str, *, links: tuple[str, ...] = ()) -> None:
    """Check that a page loads nothing, and runs only its own script."""
    page = Page(html)
    loading = {"src", "srcset", "action", "xlink:href", "background", "poster", "data", "style"}
    for tag, attributes in page.elements:
        assert not loading & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        if "href" in attributes:
            link = str(attributes["href"])
            assert (tag == "a" and (link in links or link.startswith("#"))) or link == "data:,"
    assert "url(" not in html
    assert "@import" not in html
    assert len(page.of("script")) == 1
    (policy,) = (item["content"] or "" for item in page.of("meta") if "http-equiv" in item)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("style", "script"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def several() -> Plan:
    """Return a plan with a group, deletions, a pause with an update, a create and drift."""
    keys = [f"orders_{number}" for number in range(8)]
    base = [export(key, name=key) for key in keys]
    live = [live_export(key, key) for key in keys[:7]]
    resources = [export(key, name=key, destination=s3(region="eu")) for key in keys[:4]]
    resources += [export(keys[4], name=keys[4], interval="day", paused=True)]
    resources += [export(keys[6], name=keys[6])]
    live[6] = live_export(keys[6], keys[6], interval="day")
    return planned(
        desired_of(project(), *resources, export("new", sql_query="SELECT 1,\n  2")),
        live_of(live_project(), *live),
        Policy(prune=True, max_deletes=Limit(0)),
        base=desired_of(project(), *base),
    )


def updated(*runs: Any) -> Plan:
    """Return the plan of an export with these latest runs."""
    bodies = [{"id": str(n), **run} if isinstance(run, dict) else run for n, run in enumerate(runs)]
    live = live_of(live_project(), live_export(latest_runs=bodies))
    return planned(desired_of(project(), export(interval="day")), live)


def with_head(plan: Plan, branch: str | None) -> Plan:
    source = replace(plan.source, applied="c0ffee0123", head="9f8e7d6543", head_ref=branch)
    return replace(plan, source=source)


def test_dangers_come_first_and_links_lead_to_every_change() -> None:
    plan = several()
    html = plan_as_html(plan)
    page = Page(html)
    assert max(Counter(page.ids()).values()) == 1
    assert {change.id for change in plan.effective} <= set(page.ids())
    assert {str(item["href"]).removeprefix("#") for item in page.of("a")} <= set(page.ids())
    dangerous = [entry for entry in page.entries() if entry["data-severity"] == "danger"]
    assert dangerous
    assert all(("open" in entry) is (entry in dangerous) for entry in page.entries())
    assert html.index("danger</h2>") < html.index("Refused by policy") < html.index("<form")
    assert_closed(html)
    assert '<span class="added">+ SELECT 1,</span>' in html
    actions = {box["value"] for box in page.of("input") if box["type"] == "checkbox"}
    assert (
        actions
        == {"create", "update", "pause", "delete"}
        == {entry["data-state"] for entry in page.entries()}
    )
    assert "<form" not in plan_as_html(planned(desired_of(project()), live_of(live_project())))


@pytest.mark.parametrize("name", [HOSTILE, "a\u202eb\x1b[2J\x00"])
def test_names_are_text(name: str) -> None:
    live = live_of(live_project(1, name), live_export("e1", name))
    resources = (project(name=name), export("e", name=name, interval="day"))
    plan = planned(desired_of(*resources), live)
    violation = Refusal("max_deletes", name, (), Mark(f"{name}.yaml"), name)
    html = plan_as_html(replace(plan, refusals=(violation,)), RenderOptions(cost=name))
    assert_closed(html)
    page = Page(html)
    assert page.of("img") == []
    assert not re.search(r"##\w*\[", html)
    assert "\u202e" not in html
    assert printable(name) in page.text
    html.encode()


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
        assert len(Page(text).of("script")) == 1
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


def test_the_error_of_a_run_is_not_in_the_plan_file() -> None:
    plan = updated(RUN, FAILED)
    assert "c0ffee0: 0 of 2 resources → 9f8e7d6 · " in plan_as_markdown(with_head(plan, None))
    assert b"AKIA1" not in encode(plan)
    masked = masked_in(plan, lambda text: text.replace("Failed", "***"))
    assert [run.status for run in masked.effective[0].runs] == ["Completed", "***"]


def test_security_8_the_status_of_a_run_is_text() -> None:
    plan = updated({**RUN, "status": HOSTILE}, {**RUN, "status": "::error::x ##[y]\n\x1b[2J"})
    change = replace(plan.effective[0], runs=(RecentRun(HOSTILE, HOSTILE), RecentRun("\u202e", "")))
    for hostile in (plan, replace(plan, changes=(change,))):
        text = plan_as_html(decode(encode(hostile)))
        assert_closed(text)
        assert "\u202e" not in text
        assert "##[" not in text
