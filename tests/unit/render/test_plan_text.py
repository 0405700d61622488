"""Test what a plan for a terminal shows, groups and leaves out, new places first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Consequence, Leaving, Note, Plan, Refusal, Severity
from reconciler.model.resource import State
from reconciler.model.values import Address, SecretRef
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
from tests.unit.render.plans import check, exports, words_of

ABSENT: dict[str, Any] = {"state": State.ABSENT}
LAKE = export(destination=postgres())


def of_width(width: int) -> RenderOptions:
    return RenderOptions(style=Style(width=width))


def moved_exports(count: int) -> Plan:
    """Return the plan of a new region for many exports."""
    new, old = (s3(region=region) for region in ("eu-central-1", "eu-west-1"))
    return exports(count, {"destination": new}, {"destination": old})


def _moved(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    place = "abcdefghijklmnopqrstuvwxyz"[number % 26] * (1 + number // 26)
    return {"destination": s3(prefix=f"{place}/new")}, {"destination": s3(prefix=f"old{number}/")}


def _sent(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    config = {"database": "d", "schema": "public", "table_name": "t"}
    secrets = {name: SecretRef.of("env", name.upper()) for name in ("user", "password")}
    new = {"type": "Postgres", "config": {**config, **secrets, "host": f"db{number}.x.example"}}
    return {"destination": new}, {"destination": {"type": "Postgres", "config": config}}


def _mixed(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    query = f"SELECT\n  event,\n  timestamp\nFROM events\nWHERE event = 'e{number}'"
    queried = ({"sql_query": query.replace("timestamp", "uuid")}, {"sql_query": query})
    of_all = _moved(number), queried, _sent(number), (ABSENT, {}), ({"paused": True}, {})
    return of_all[number % 5]


@pytest.mark.parametrize("change", [_moved, _sent, _mixed])
@pytest.mark.parametrize("width", [80, 100])
def test_r14_300_changes_of_any_kind_take_at_most_150_lines(
    change: Callable[[int], tuple[dict[str, Any], dict[str, Any]]], width: int
) -> None:
    key = "export-{:03}"
    plan = exports(300, lambda n: change(n)[0], lambda n: change(n)[1], key=key)
    text = plan_as_text(plan, of_width(width))
    lines = text.splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= width
    assert len(plan_as_markdown(plan)) <= 20_000
    dangers = [change for change in plan.changes if change.severity is Severity.DANGER]
    assert f"\n{len(dangers)} dangers\n" in text or not dangers
    hides_dangers = re.search(r"more changes, \d+ with dangers \(list: --verbose\)", text)
    assert bool(hides_dangers) is (change is not _moved)
    verbose = plan_as_text(plan, replace(of_width(width), verbose=True))
    assert all(f"batch_export.{key.format(number)} " in verbose for number in range(300))


def test_what_is_the_same_is_written_once() -> None:
    check(exports(3, {"paused": True}, {}), "  ‖ 3 batch exports\n      x0, x1, x2\n")
    check(exports(2, {"paused": True}, {}), "  ‖ batch_export.x0 ", "  ‖ batch_export.x1 ")
    projects = (project(f"p{number}") for number in range(500))
    once = {"new-api-token": 1, "note: 500 projects: ": 1}
    check(planned(desired_of(*projects), live_of()), times=once, most=20)


def test_a_summary_has_counts_dangers_and_violations_only() -> None:
    violations = (Refusal("max_deletes", "too many"),)
    plan = replace(exports(1, ABSENT, {}), refusals=violations, notes=(Note("x", "text"),))
    options = RenderOptions(summary=True, cost="9 calls, about 1 s")
    ends = ("Refused by 1 rule: max_deletes. Nothing will be applied.", "9 calls, about 1 s.")
    danger = "1 danger: batch_export.x0 (history-lost)"
    check(plan, danger, "1 note: omit --summary to read", *ends, options=options)


def test_every_deletion_has_a_line_and_many_are_named_in_few_lines() -> None:
    once = {"\n  - batch_export.x": 30, "!! history-lost": 1}
    check(exports(30, ABSENT, {}), times=once)
    names = [f"x{number:03}" for number in range(100)]
    more = "and 30 more (list: --verbose)"
    check(exports(130, ABSENT, {}, key="x{:03}"), more, *names, most=39)


def test_r14_what_differs_is_not_hidden_by_what_is_the_same() -> None:
    def bucket(number: int) -> dict[str, Any]:
        return {"destination": s3(prefix=f"p{number}/")}

    def unlike(number: int) -> dict[str, Any]:
        return {"destination": s3(prefix="../payroll/" if number == 33 else f"v2/p{number}/")}

    parts = ('"p33/" -> "../payroll/"', '49 values, such as "p0/" -> "v2/p0/"')
    check(exports(50, unlike, bucket), *parts, options=of_width(80), most=24)
    keys = [SecretRef.of("literal", f"batch_export.{number}") for number in range(21)]
    secrets = [{"destination": s3(aws_secret_access_key=key)} for key in keys]
    check(exports(21, secrets.__getitem__), times={"  + batch_export.x": 21}, most=200)


def test_r14_what_has_no_space_has_one_line_and_then_is_counted() -> None:
    plan = exports(100, lambda n: _moved(n)[0], lambda n: _moved(n)[1], key="x{:03}")
    text = plan_as_text(plan)
    whole = '  ~ batch_export.x000 "X000"\n      destination.config.prefix  "old0/" -> "a/new"'
    assert whole in text
    short = re.findall(
        r"^  ~ batch_export.(x\d+)  destination.config.prefix  (.*)$", text, re.MULTILINE
    )
    assert short[0] == ("x021", '"old21/" -> "v/new"')
    count, first = re.findall(r"^  ~ (\d+) to update: (x\d+), ", text, re.MULTILINE)[0]
    assert first == f"x{21 + len(short):03}"
    assert 21 + len(short) + int(count) == 100
    assert f"… and {count} more changes (list: --verbose)" in text


DANGER = (Consequence("very-bad", Severity.DANGER, "all is lost"),)


def test_the_dangers_of_a_group_name_their_objects() -> None:
    plan = moved_exports(30)
    dangerous = tuple(replace(change, consequences=DANGER) for change in plan.effective)
    named = ("28 dangers\n", "  !! update 28 batch exports: x10, x11, ", "and 8 more: all is lost")
    check(replace(plan, changes=dangerous[2:]), *named, times={"!! very-bad\n": 1})
    for count in (3, 30):
        first, *others = moved_exports(count).effective
        text = plan_as_text(replace(plan, changes=(replace(first, consequences=DANGER), *others)))
        assert text.count(f'  ~ {first.address} "{first.name}"') == 1


def test_plan_v6_dangers_are_counted_and_named_beside_the_summary() -> None:
    plan = moved_exports(30)
    other = (Consequence("even-worse", Severity.DANGER, "more is lost"),)
    changes = [replace(change, consequences=DANGER) for change in plan.effective]
    changes[0] = replace(changes[0], consequences=other)
    last = plan_as_text(replace(plan, changes=tuple(changes))).split("\nPlan: ")[1]
    lines = last.replace("\n        ", " ").splitlines()
    assert lines[1].startswith("      30 dangers: batch_export.x0 (even-worse); batch_export.x1, ")
    assert lines[1].endswith(" and 25 more (very-bad)")
    assert len(last.splitlines()) <= 5


def test_plan_v7_what_each_of_two_deleted_projects_loses_is_shown() -> None:
    changes, lost = [], (("shop", "3 exports"), ("web", "9 exports"))
    for key, what in lost:
        danger = Consequence("project-lost", Severity.DANGER, f"deletes {what}")
        address = Address("project", key)
        changes.append(Change(address, Action.DELETE, key.title(), consequences=(danger,)))
    plan = replace(moved_exports(3), changes=tuple(changes))
    for key, what in lost:
        assert f'!! delete project.{key} "{key.title()}": deletes {what}' in plan_as_text(plan)
        assert f'`delete project.{key} "{key.title()}"`: deletes {what}' in plan_as_markdown(plan)
    assert plan_as_text(plan).count("!! project-lost") == 1


def test_r14_one_new_object_that_differs_has_its_own_entry_first() -> None:
    text = plan_as_text(exports(8, lambda n: {"interval": "day"} if n == 3 else {}), of_width(80))
    assert "day" in text[text.index("  + batch_export.x3") : text.index("  + 7 batch exports in")]


def test_a_long_name_does_not_hide_a_danger() -> None:
    names = ["Long " + "n" * 1_700, "Old" + " " * 60 + "0 dangers"]
    gone = [export(f"x{n}", name=name, **ABSENT) for n, name in enumerate(names)]
    live = [live_export(f"e{n}", name) for n, name in enumerate(names)]
    plan = planned(desired_of(project(), *gone), live_of(live_project(), *live))
    assert "history of runs" in words_of(plan_as_text(plan, of_width(80)))[: 24 * 80]
    alone = replace(plan, changes=plan.changes[1:])
    assert 'batch_export.x1 "Old 0 dangers" in Web' in plan_as_text(alone)


# What is new, loosened or dangerous in several environments


def test_the_section_is_absent_if_nothing_is_new() -> None:
    plain = changed(export(interval="day"), before=(export(),))
    for write in (plan_as_text, plan_as_markdown, plan_as_github, plan_as_html):
        assert "ew places" not in write(plain)


def test_plan_v2_what_reaches_something_else_is_in_no_group() -> None:
    others = [project(f"p{number}") for number in range(30)]
    evil = project("evil", session_recording_opt_in=True, app_urls=["https://evil.example"])
    plan = planned(desired_of(*others, evil), live_of())
    check(plan, "  + 30 projects", "https://evil.example")
    before, after = (
        [
            export(f"x{n}", destination=postgres(f"{host}.example"), secret_version=version)
            for n, host in enumerate("aaaaab")
        ]
        for version in "12"
    )
    check(changed(*after, before=tuple(before)), "  ~ 5 batch exports", "  ~ batch_export.x5")
    encrypted = {"destination": s3(encryption="aws:kms", kms_key_id="evil-key")}
    for count in (1, 5):
        check(exports(count, encrypted), "encryption aws:kms, kms_key_id evil-key")


def test_plan_v7_a_known_secret_to_a_new_address_names_each_object() -> None:
    known, evil = (
        [export(f"x{number}", destination=postgres(host)) for number in range(5)]
        for host in ("db.example", EVIL)
    )
    plan = changed(*evil, before=tuple(known))
    (line,) = [text for text in plan_as_markdown(plan).split("\n") if text.startswith("> - ")]
    assert line.startswith("> - `update 5 batch exports: x0, x1, x2, x3, x4`: data goes to ")


def test_many_new_places_hide_no_other_kind_and_no_other_domain() -> None:
    hosts = [export(f"x{n}", destination=postgres(f"h{n}.acme.example")) for n in range(60)]
    evil = export("z", destination=postgres(f"{'a' * 60}.evil-partner.test"))
    query = export("q", sql_query=f"select {'a, ' * 200} b from events join persons")
    plan = changed(LAKE, *hosts, evil, query, before=(LAKE, export("q")))
    dangers, places = plan_as_text(plan, of_width(80)).split("\n\n")[1:3]
    assert "evil-partner.test" in dangers
    assert "query over events, persons" in places
    assert len(dangers.split("\n")) + len(places.split("\n")) <= 24


def test_what_is_new_and_loosened_in_all_environments_is_above_all() -> None:
    """R6, R10: with what leaves management, protected resources first."""
    plan = changed(export(destination=postgres(EVIL)), before=(LAKE,))
    old = Leaving(Address("batch_export", "old"), "7", "Old", "not declared", protected=True)
    addresses = [Address("batch_export", f"o{number}") for number in range(60)]
    others = [Leaving(address, "8", "O", "not declared") for address in addresses]
    plan = replace(plan, leaving=(*others, old))
    plans = [OfEnvironment("dev", changed()), OfEnvironment("production", plan)]
    text, comment = plans_as_text(plans, of_width(80)), plans_as_markdown(plans)
    leaving = "production: not managed any more: batch_export.old (protected), "
    for shown in (text.partition("Environment")[0], comment.partition("### dev")[0]):
        check(shown, EVIL, "1 danger", leaving, "and 21 more")
    assert text.count(": not managed any more: ") == comment.count(": not managed any more: ") == 1
    for form in ("github", "sarif", "html", "text", "markdown", "json"):
        shown = writer_of(form, "plan")(plan, RenderOptions())
        assert "old (protected)" in shown or '"protected":true' in shown.replace(" ", "")


def test_r10_r11_the_worst_danger_of_all_environments_is_among_the_first() -> None:
    elsewhere = changed(export(destination=postgres(EVIL)), before=(LAKE,))
    one = exports(1, ABSENT, {})
    text = plans_as_text([OfEnvironment("dev", elsewhere), OfEnvironment("prod", one)])
    assert text.splitlines()[1].startswith("  !! prod: delete batch_export.x0")
    last = [[{"created_at": f"2026-06-{day:02}T00:00:00Z"}] for day in range(1, 21)]
    first = exports(20, ABSENT, lambda number: {"latest_runs": last[number]})
    plans = [OfEnvironment("dev", first), OfEnvironment("production", one)]
    text, comment = plans_as_text(plans, of_width(80)), plans_as_markdown(plans)
    assert "21 dangers" in text.splitlines()[0]
    assert any(re.search(r"!! production.*x0: the", line) for line in text.splitlines()[:14])
    assert "### 2 environments · 21 dangers" in comment
    assert re.search(r"> - production.*x0: the", comment[:1_500])
