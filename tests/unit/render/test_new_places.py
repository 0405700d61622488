"""The section of new places and queries comes first in every format, with a budget of its own."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.plan import Leaving
from reconciler.model.resource import State
from reconciler.model.values import Address
from reconciler.render import writer_of
from reconciler.render.ci_reports import plan_as_github
from reconciler.render.html import plan_as_html
from reconciler.render.options import RenderOptions, Style
from reconciler.render.plan_markdown import plan_as_markdown, plans_as_markdown
from reconciler.render.plan_text import plan_as_text, plans_as_text
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
from tests.unit.planning.test_places import EVIL, changed, postgres

TEXT = RenderOptions(Style(width=80))
LAKE = export(destination=postgres())


@pytest.mark.parametrize("spec", [{"sql_query": "select a from persons"}, {"model": "persons"}])
@pytest.mark.parametrize("count", [1, 21])
def test_plan_v2_a_group_has_no_member_that_collects_something_else(
    spec: dict[str, Any], count: int
) -> None:
    others = [export(f"x{number}") for number in range(count)]
    plan = changed(export(), *others, export("evil", **spec), before=(export(),))
    text = plan_as_text(plan, TEXT)
    assert '\n  + batch_export.evil "Evil"\n' in text
    assert ("batch exports in Web" in text) is (count > 20)
    assert "persons" in text.split("\n\n")[1]


def test_plan_v2_what_reaches_something_else_is_in_no_group() -> None:
    others = [project(f"p{number}") for number in range(30)]
    evil = project("evil", session_recording_opt_in=True, app_urls=["https://evil.example"])
    text = plan_as_text(planned(desired_of(*others, evil), live_of()))
    assert "  + 30 projects" in text
    assert "https://evil.example" in text
    before, after = (
        [
            export(f"x{n}", destination=postgres(f"{host}.example"), secret_version=version)
            for n, host in enumerate("aaaaab")
        ]
        for version in "12"
    )
    text = plan_as_text(changed(*after, before=tuple(before)))
    assert "  ~ 5 batch exports" in text
    assert "  ~ batch_export.x5" in text


def test_what_does_not_fit_is_counted_dangers_by_rule_and_places_by_host() -> None:
    buckets = [
        export(f"x{number}", destination=s3(bucket_name=f"b{number}", endpoint_url="https://new"))
        for number in range(50)
    ]
    evil = [export(f"y{number}", destination=postgres(f"{number}.evil")) for number in range(30)]
    plan = changed(LAKE, *buckets, *evil, before=(LAKE,))
    dangers, places = plan_as_text(plan, TEXT).split("\n\n")[1:3]
    assert dangers.count(": data goes to ") == 12
    assert dangers.startswith("30 dangers\n")
    assert "… 18 more: 18 credentials-to-new-address at 2.evil:5432" in " ".join(dangers.split())
    assert dangers.count("\n  !! ") == 12
    assert "… 38 more: 38 new-host at https://new" in places
    comment = plan_as_markdown(plan)
    assert comment.count("&#46;evil") + comment.count(".evil") >= 30
    assert "… 38 more: 38 new-host at https&#58;//new" in comment


def test_a_first_apply_has_one_line_for_each_host_with_counts() -> None:
    exports = [export(f"x{number}", destination=s3(prefix=f"{number}/")) for number in range(30)]
    plan = changed(*exports, export("crm", model="persons"), LAKE)
    section = plan_as_text(plan, TEXT).split("\n\n")[1]
    assert section.split("\n") == [
        "New places and queries",
        "   ! db.example:5432          batch_export.lake; source Web",
        "   ! s3://b                   31 batch exports: crm, x0, x1 and 28 more; source",
        "       Web; 31 prefixes",
        "   ! model persons -> s3://b  batch_export.crm; source Web",
    ]


def test_the_section_is_absent_if_nothing_is_new_and_hostile_values_stay_on_their_line() -> None:
    plain = changed(export(interval="day"), before=(export(),))
    plan = changed(export(destination=s3(bucket_name="b\n::error::\u202ex`")))
    for write in (plan_as_text, plan_as_markdown, plan_as_github, plan_as_html):
        assert "ew places" not in write(plain)
        text = write(plan)
        assert "\n::error" not in text
        assert "\u202e" not in text


def test_plan_v7_a_known_secret_to_a_new_address_names_each_object() -> None:
    keys = [f"x{number}" for number in range(5)]
    known = [export(key, destination=postgres()) for key in keys]
    evil = [export(key, destination=postgres(EVIL)) for key in keys]
    plan = changed(*evil, before=tuple(known))
    (line,) = [text for text in plan_as_markdown(plan).split("\n") if text.startswith("> - ")]
    assert line.startswith("> - `update 5 batch exports: x0, x1, x2, x3, x4`: data goes to ")


def test_many_new_places_hide_no_other_kind_and_no_other_domain() -> None:
    hosts = [export(f"x{n}", destination=postgres(f"h{n}.acme.example")) for n in range(60)]
    evil = export("z", destination=postgres(f"{'a' * 60}.evil-partner.test"))
    query = export("q", sql_query=f"select {'a, ' * 200} b from events join persons")
    plan = changed(LAKE, *hosts, evil, query, before=(LAKE, export("q")))
    for options in (RenderOptions(Style(width=80)), RenderOptions(Style(width=100))):
        dangers, places = plan_as_text(plan, options).split("\n\n")[1:3]
        assert "evil-partner.test" in dangers
        assert "query over events, persons" in places
        assert len(dangers.split("\n")) + len(places.split("\n")) <= 24
        assert max(map(len, places.split("\n"))) <= options.style.width


def test_what_is_new_and_loosened_in_all_environments_is_above_all() -> None:
    """R6, R10: with what leaves management, protected resources first."""
    plan = changed(export(destination=postgres(EVIL)), before=(LAKE,))
    old = Leaving(Address("batch_export", "old"), "7", "Old", "not declared", protected=True)
    addresses = [Address("batch_export", f"o{number}") for number in range(60)]
    others = [Leaving(address, "8", "O", "not declared") for address in addresses]
    plan = replace(plan, leaving=(*others, old))
    plans = [OfEnvironment("dev", changed()), OfEnvironment("production", plan)]
    text, comment = plans_as_text(plans, TEXT), plans_as_markdown(plans)
    for shown in (text.partition("Environment")[0], comment.partition("### dev")[0]):
        assert EVIL in shown
        assert "1 danger" in shown
        words = " ".join(shown.split())
        assert "production: not managed any more: batch_export.old (protected), " in words
        assert "and 21 more" in words
    assert text.count(": not managed any more: ") == comment.count(": not managed any more: ") == 1
    for form in ("github", "sarif", "html", "text", "markdown", "json"):
        shown = writer_of(form, "plan")(plan, RenderOptions())
        assert "old (protected)" in shown or '"protected":true' in shown.replace(" ", "")


def test_an_encrypted_new_export_shows_its_key() -> None:
    destination = s3(encryption="aws:kms", kms_key_id="evil-key")
    many = [export(f"x{number}", destination=destination) for number in range(5)]
    for plan in (changed(*many[:1]), changed(*many)):
        assert "encryption aws:kms, kms_key_id evil-key" in " ".join(plan_as_text(plan).split())


def test_r11_the_worst_danger_of_all_environments_is_the_first() -> None:
    elsewhere = changed(export(destination=postgres(EVIL)), before=(LAKE,))
    lost = planned(
        desired_of(project(), export("gone", state=State.ABSENT)),
        live_of(live_project(), live_export("e1", "Gone")),
    )
    plans = [OfEnvironment("dev", elsewhere), OfEnvironment("prod", lost)]
    assert plans_as_text(plans).splitlines()[1].startswith("  !! prod: delete batch_export.gone")
