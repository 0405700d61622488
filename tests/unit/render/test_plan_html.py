"""Test plans as HTML pages."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.plan import Plan, Refusal
from reconciler.model.settings import Limit, Policy
from reconciler.model.text import printable
from reconciler.render.html import plan_as_html
from reconciler.render.options import RenderOptions
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

    def entries(self) -> list[dict[str, str | None]]:
        return [
            attributes
            for tag, attributes in self.elements
            if tag == "details" and "data-state" in attributes
        ]

    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]


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


def test_every_change_has_an_id_that_a_link_can_name() -> None:
    plan = several()
    page = Page(plan_as_html(plan))
    ids = page.ids()
    assert max(Counter(ids).values()) == 1
    assert {str(change.address) for change in plan.effective} <= set(ids)
    links = [str(attributes["href"]) for tag, attributes in page.elements if tag == "a"]
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_two_changes_of_an_object_have_two_ids() -> None:
    changes = [change for change in several().effective if change.address.key == "orders_4"]
    assert len(changes) == 2
    ids = set(Page(plan_as_html(several())).ids())
    assert "batch_export.orders_4" in ids
    assert len(ids & {change.id for change in changes}) == 1


def test_dangers_come_first_and_are_open() -> None:
    html = plan_as_html(several())
    entries = Page(html).entries()
    dangerous = [entry for entry in entries if entry["data-severity"] == "danger"]
    assert dangerous
    assert all(("open" in entry) is (entry in dangerous) for entry in entries)
    assert html.index("danger</h2>") < html.index("Refused by policy") < html.index("<form")


def test_filters_offer_the_actions_severities_and_projects_of_the_plan() -> None:
    page = Page(plan_as_html(several()))
    boxes = [attributes for tag, attributes in page.elements if tag == "input"]
    actions = {box["value"] for box in boxes if box["type"] == "checkbox"}
    assert actions == {"create", "update", "pause", "delete"}
    values = [attributes["value"] for tag, attributes in page.elements if tag == "option"]
    assert values == ["*", "danger", "warning", "*", "Web"]
    for entry in page.entries():
        assert entry["data-state"] in actions
        assert set(str(entry["data-parents"]).split("\n")) <= set(values)


def test_a_group_lists_and_finds_all_its_members() -> None:
    page = Page(plan_as_html(several()))
    group = next(entry for entry in page.entries() if "orders_0" in str(entry["data-text"]))
    assert "batch_export.orders_3" in str(group["data-text"])
    assert "update 4 batch exports" in page.text


def test_the_page_loads_nothing_and_runs_only_its_script() -> None:
    html = plan_as_html(several())
    page = Page(html)
    policy = next(
        str(attributes["content"]) for _, attributes in page.elements if "http-equiv" in attributes
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not {"src", "style", "onclick"} & {name for _, item in page.elements for name in item}
    for _, attributes in page.elements:
        assert str(attributes.get("href", "#")).startswith(("#", "data:,"))


@pytest.mark.parametrize("name", [HOSTILE, "::error::x", "a\u202eb\x1b[2J\x00"])
def test_names_are_text(name: str) -> None:
    live = live_of(live_project(1, name), live_export("e1", name))
    resources = (project(name=name), export("e", name=name, interval="day"))
    plan = planned(desired_of(*resources), live)
    violation = Refusal("max_deletes", name, (), Mark(f"{name}.yaml"), name)
    html = plan_as_html(replace(plan, refusals=(violation,)), RenderOptions(cost=name))
    page = Page(html)
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert "img" not in dict(page.elements)
    assert not re.search(r"##\w*\[", html)
    assert not re.search(r"^\s*::", html, re.MULTILINE)
    assert "\u202e" not in html
    assert printable(name) in page.text
    html.encode()


def test_an_empty_plan_has_no_filters() -> None:
    plan = planned(desired_of(project()), live_of(live_project()))
    html = plan_as_html(plan)
    page = Page(html)
    assert "No changes. Live state matches the configuration." in page.text
    assert "<form" not in html
    assert page.entries() == []


def test_removed_and_added_text_is_marked() -> None:
    html = plan_as_html(several())
    assert '<span class="added">+ SELECT 1,</span>' in html
    assert '<td class="removed" data-label="before">&#34;r&#34;</td>' in html
