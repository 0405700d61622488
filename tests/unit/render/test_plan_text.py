"""Test what a plan for a terminal shows, groups and leaves out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.diagnostics import Mark, OfEnvironment
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Consequence, Note, Plan, Severity
from reconciler.model.resource import Resource, State
from reconciler.model.settings import Limit, Policy
from reconciler.model.values import Address, SecretRef
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
    with_secrets,
)

VERBOSE = RenderOptions(verbose=True)
PROJECTS = (project("marketing"), project("shop"))
LIVE_PROJECTS = (live_project(1, "Marketing"), live_project(2, "Shop"))


def exports(count: int, *changes: dict[str, Any], live: bool = True, **body: Any) -> Plan:
    """Return the plan of many exports; `changes` are their fields in turns, `body` is live."""
    fields = changes or ({},)
    wanted = [export(f"x{number}", **fields[number % len(fields)]) for number in range(count)]
    there = [live_export(f"e{n}", f"X{n}", **body) for n in range(count)] if live else ()
    return planned(desired_of(project(), *wanted), live_of(live_project(), *there))


def moved_exports(count: int) -> Plan:
    """Return the plan of a new region for many exports of two projects."""
    new, live = [], []
    for number in range(count):
        place, parent = f"p{number}/", 1 if number % 5 < 2 else 2
        destination = with_secrets(region="eu-central-1", prefix=place)
        key = ("marketing", "shop")[parent - 1]
        new.append(export(f"x{number}", parent=key, destination=destination))
        destination = s3(region="eu-west-1", prefix=place)
        live.append(live_export(f"e{number}", f"X{number}", parent=parent, destination=destination))
    return planned(desired_of(*PROJECTS, *new), live_of(*LIVE_PROJECTS, *live))


def of_one(lake: Resource, *, base: Resource | None = None, **body: Any) -> str:
    """Return the text of the plan of one export."""
    former = desired_of(project(), base) if base is not None else None
    live = live_of(live_project(), live_export(**body))
    return plan_as_text(planned(desired_of(project(), lake), live, base=former))


def test_experience_8_one_change_in_300_exports_takes_at_most_40_lines() -> None:
    plan = moved_exports(300)
    text = plan_as_text(plan)
    assert len(text.splitlines()) <= 40
    assert '~ 300 batch exports   destination.config.region  "eu-west-1" -> "eu-central-1"' in text
    assert "Marketing 120, Shop 180 (list: --verbose)" in text
    assert "not sent (no change detected)" not in text
    verbose = plan_as_text(plan, VERBOSE)
    assert all(f"batch_export.x{number} " in verbose for number in range(300))
    assert "not sent (no change detected)" in verbose


def _moved(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    place = "abcdefghijklmnopqrstuvwxyz"[number % 26] * (1 + number // 26)
    return {"destination": s3(prefix=f"{place}/new")}, {"destination": s3(prefix=f"old{number}/")}


def _queried(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    query = f"SELECT\n  event,\n  timestamp\nFROM events\nWHERE event = 'e{number}'"
    return {"sql_query": query.replace("timestamp", "uuid")}, {"sql_query": query}


def _sent(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    config = {"database": "d", "schema": "public", "table_name": "t"}
    secrets = {name: SecretRef.of("env", name.upper()) for name in ("user", "password")}
    new = {"type": "Postgres", "config": {**config, **secrets, "host": f"db{number}.x.example"}}
    return {"destination": new}, {"destination": {"type": "Postgres", "config": config}}


def _deleted(_: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"state": State.ABSENT}, {}


def _mixed(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    kinds = (_moved, _queried, _sent, _deleted, lambda _: ({"paused": True}, {}))
    return kinds[number % 5](number)


@pytest.mark.parametrize("change", [_moved, _queried, _sent, _deleted, _mixed])
@pytest.mark.parametrize("width", [80, 100])
def test_r14_300_changes_of_any_kind_take_at_most_150_lines(
    change: Callable[[int], tuple[dict[str, Any], dict[str, Any]]], width: int
) -> None:
    pairs = {f"export-{number:03}": change(number) for number in range(300)}
    new = [export(key, **pair[0]) for key, pair in pairs.items()]
    live = [live_export(key, key.title(), **pair[1]) for key, pair in pairs.items()]
    plan = planned(desired_of(project(), *new), live_of(live_project(), *live))
    options = RenderOptions(style=Style(width=width))
    text = plan_as_text(plan, options)
    lines = text.splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= width
    assert len(plan_as_markdown(plan)) <= 20_000
    dangers = [change for change in plan.changes if change.severity is Severity.DANGER]
    assert f"\n{len(dangers)} dangers\n" in text or not dangers
    hides_dangers = re.search(r"more changes, \d+ with dangers \(list: --verbose\)", text)
    assert bool(hides_dangers) is (change in (_sent, _mixed))
    verbose = plan_as_text(plan, replace(options, verbose=True))
    assert all(f"batch_export.{key} " in verbose for key in pairs)


def test_r14_one_new_bucket_of_exports_with_own_prefixes_is_one_entry() -> None:
    """A variable of an environment changes the bucket of all exports."""
    new = [export(f"x{n}", destination=s3(bucket_name="new", prefix=f"p{n}/")) for n in range(14)]
    live = [live_export(f"x{n}", f"X{n}", destination=s3(prefix=f"p{n}/")) for n in range(14)]
    base = [export(f"x{n}", destination=s3(prefix=f"p{n}/")) for n in range(14)]
    world = live_of(live_project(), *live)
    plan = planned(desired_of(project(), *new), world, base=desired_of(project(), *base))
    assert '~ 14 batch exports   destination.config.bucket_name  "b" -> "new"' in plan_as_text(plan)


def test_r14_what_has_no_space_has_one_line_and_then_is_counted() -> None:
    new = [export(f"x{number:03}", **_moved(number)[0]) for number in range(100)]
    live = [live_export(f"x{n:03}", f"X{n:03}", **_moved(n)[1]) for n in range(100)]
    plan = planned(desired_of(project(), *new), live_of(live_project(), *live))
    text = plan_as_text(plan)
    assert (
        '  ~ batch_export.x000 "X000"\n      destination.config.prefix  "old0/" -> "a/new"' in text
    )
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
    dangerous = tuple(replace(change, consequences=DANGER) for change in plan.changes)
    text = plan_as_text(replace(plan, changes=dangerous[2:]))
    assert text.startswith("28 dangers\n", text.index("28 dangers"))
    assert "  !! update 28 batch exports: x10, x11, " in text
    assert "and 8 more: all is lost" in text.replace("\n     ", " ")
    assert text.count("!! very-bad\n") == 1
    for count in (3, 30):
        first, *others = moved_exports(count).changes
        changes = (replace(first, consequences=DANGER), *others)
        text = plan_as_text(replace(plan, changes=changes))
        assert text.count(f'  ~ {first.address} "{first.name}"') == 1


def test_plan_v6_dangers_are_counted_and_named_beside_the_summary() -> None:
    plan = moved_exports(30)
    other = (Consequence("even-worse", Severity.DANGER, "more is lost"),)
    changes = [replace(change, consequences=DANGER) for change in plan.changes]
    changes[0] = replace(changes[0], consequences=other)
    last = plan_as_text(replace(plan, changes=tuple(changes))).split("\nPlan: ")[1]
    lines = last.replace("\n        ", " ").splitlines()
    assert lines[1].startswith("      30 dangers: batch_export.x0 (even-worse); batch_export.x1, ")
    assert lines[1].endswith(" and 25 more (very-bad)")
    assert len(last.splitlines()) <= 5


@pytest.mark.parametrize("inside", [("3 exports", "9 exports"), ("all", "all")])
def test_plan_v7_what_each_of_two_deleted_projects_loses_is_shown(inside: tuple[str, str]) -> None:
    changes = []
    for key, what in zip(("shop", "web"), inside, strict=True):
        danger = Consequence("project-lost", Severity.DANGER, f"deletes {what}")
        address = Address("project", key)
        changes.append(Change(address, Action.DELETE, key.title(), consequences=(danger,)))
    plan = replace(moved_exports(3), changes=tuple(changes))
    for key, name, what in (("shop", "Shop", inside[0]), ("web", "Web", inside[1])):
        assert f'!! delete project.{key} "{name}": deletes {what}' in plan_as_text(plan)
        assert f'`delete project.{key} "{name}"`: deletes {what}' in plan_as_markdown(plan)


def test_messages_that_differ_only_in_the_address_are_one() -> None:
    text = plan_as_text(exports(4, {"paused": True})).replace("\n        ", " ")
    assert text.count("runs-missed-while-paused") == 1
    assert "reconciler backfill -e staging ADDRESS " in text
    assert "  ‖ 4 batch exports\n      x0, x1, x2, x3\n" in text


def test_verbose_shows_every_consequence_that_differs_in_detail() -> None:
    intervals = ["hour", "day"] * 3
    wanted = [export(f"x{n}", interval=word, paused=True) for n, word in enumerate(intervals)]
    live = [live_export(f"e{n}", f"X{n}", interval=word) for n, word in enumerate(intervals)]
    plan = planned(desired_of(project(), *wanted), live_of(live_project(), *live))
    assert "(3 more differ: --verbose)" in plan_as_text(plan).replace("\n        ", " ")
    text = plan_as_text(plan, VERBOSE)
    assert "hourly runs" in text
    assert "daily runs" in text
    assert "more differ" not in text


def test_every_deletion_has_a_line_and_many_are_named_in_few_lines() -> None:
    text = plan_as_text(exports(30, {"state": State.ABSENT}))
    assert sum(line.startswith("  - batch_export.x") for line in text.splitlines()) == 30
    assert text.count("!! history-lost") == 1
    text = plan_as_text(exports(130, {"state": State.ABSENT}))
    assert len(text.splitlines()) < 40
    assert len(set(re.findall(r"\bx\d+", text))) >= 100
    assert "and 30 more (list: --verbose)" in " ".join(text.split())


def test_many_new_objects_of_a_project_are_listed_by_name() -> None:
    plan = exports(21, live=False)
    text = plan_as_text(plan)
    assert "  + 21 batch exports in Web\n" in text
    assert "destination  S3 s3://b/a/" not in text
    assert "      destination  S3 s3://b" in text
    assert all(f"x{number}" in text for number in range(21))
    fewer = plan_as_text(replace(plan, changes=plan.changes[18:]))
    assert fewer.count("destination  S3 s3://b/p/ (r), JSONLines") == 3
    assert plan_as_text(plan, VERBOSE).count("destination.config.bucket_name") == 21


def test_literals_and_long_commands_are_never_the_same_secret() -> None:
    for source, begin in (("exec", "read " * 40), ("literal", "batch_export.")):
        wanted = [
            export(
                f"x{number}",
                destination=s3(aws_secret_access_key=SecretRef.of(source, f"{begin}{number}")),
            )
            for number in range(21)
        ]
        text = plan_as_text(planned(desired_of(project(), *wanted), live_of(live_project())))
        assert text.count("  + batch_export.x") == 21


def test_terraform_brevity_a_note_of_many_changes_is_printed_once() -> None:
    plan = planned(desired_of(*(project(f"p{number}") for number in range(500))), live_of())
    text = plan_as_text(plan)
    assert text.count("new-api-token") == 1
    assert "note: 500 projects: " in text
    assert len(text.splitlines()) <= 20


def test_an_origin_that_fields_do_not_share_is_beside_them() -> None:
    lake = export()
    mixed = of_one(replace(lake, spec={**lake.spec, "model": "persons"}), base=lake, interval="day")
    assert "Drift (" not in mixed
    assert 'interval  "day" -> "hour"  # drift' in mixed
    assert "drift" not in of_one(lake, base=lake, interval="day").split("Drift (")[0]


def test_the_place_of_a_change_is_at_the_right_or_below() -> None:
    lake = replace(export(interval="day"), mark=Mark("exports/lake.yaml", 3, 1))
    live = live_of(live_project(), live_export())
    plan = planned(desired_of(project(), lake), live)
    wide = plan_as_text(plan, RenderOptions(Style(width=160))).splitlines()
    assert wide[3] == f'  ~ batch_export.lake "Lake"{" " * 53}exports/lake.yaml:3'
    narrow = plan_as_text(plan, RenderOptions(Style(width=40))).splitlines()
    at = narrow.index('  ~ batch_export.lake "Lake"')
    assert narrow[at + 1] == "      exports/lake.yaml:3"


def test_a_note_about_a_resource_is_below_its_change() -> None:
    plan = planned(desired_of(project(), export()), live_of(live_project()))
    notes = (
        Note("near", "look here", Address("batch_export", "lake")),
        Note("far", "look there", Address("batch_export", "pond")),
    )
    text = plan_as_text(replace(plan, notes=notes))
    assert "      note: look here\n\nnote: batch_export.pond: look there\n" in text


def test_nothing_to_do_is_one_line_below_the_header() -> None:
    other = live_export("e2", "Other", destination=s3(prefix="other/"))
    live = live_of(live_project(), live_export(), other)
    plan = planned(desired_of(project(), export()), live, base=desired_of(project(), export()))
    assert plan_as_text(plan, RenderOptions(Style(width=120))) == (
        "Environment staging · https://x.example · organization org\n"
        "Applied     c0ffee0 (3 commits ago): 2 of 2 resources\n"
        "No changes. Live state matches the configuration (2 resources; 1 unmanaged, list with "
        "--show-unmanaged).\n"
    )


def test_the_summary_has_counts_dangers_and_violations_only() -> None:
    wanted = [export(f"x{number}", interval="day") for number in range(3)]
    live = [live_export(f"e{number}", f"X{number}") for number in range(3)]
    gone = export("old", state=State.ABSENT)
    plan = planned(
        desired_of(project(), *wanted, gone),
        live_of(live_project(), *live, live_export("e9", "Old")),
        Policy(max_deletes=Limit(0)),
    )
    text = plan_as_text(plan, RenderOptions(summary=True, cost="9 calls, about 1 s"))
    assert "interval-changed" not in text
    assert '  !! delete batch_export.old "Old" in Web: its history' in text
    assert "[max_deletes]" in text
    dangers = "      1 danger: batch_export.old (history-lost)\n"
    refused = "      Refused by 1 rule: max_deletes. Nothing will be applied.\n"
    assert text.endswith(f"(5 resources).\n{dangers}{refused}      9 calls, about 1 s.\n")


def test_experience_26_no_line_is_wider_than_the_terminal() -> None:
    wanted = [export(f"x{number}", interval="day", model="persons") for number in range(12)]
    live = [live_export(f"e{number}", f"X{number}") for number in range(12)]
    plan = planned(
        desired_of(project(), *wanted, export("new")),
        live_of(live_project(), *live, live_export("other")),
        Policy(max_changes=Limit(1)),
    )
    for width in (40, 60, 80, 160):
        text = plan_as_text(plan, RenderOptions(Style(width=width)))
        assert max(map(len, text.splitlines())) <= width


def test_security_8_a_name_that_looks_the_same_is_shown_as_another_one() -> None:
    for hidden in ("\u3164", "\u115f", "\uffa0", "\u034f", "\u2800", "\U000e0100"):
        live = live_of(live_project(), live_export("e1", "Lake"))
        renamed = export(name=f"Lake{hidden}", pinned_id="e1")
        text = plan_as_text(planned(desired_of(project(), renamed), live))
        assert hidden not in text
        assert hidden.encode("unicode_escape").decode() in text.replace("\\\\", "\\")


def first_screen(plan: Plan) -> str:
    return "\n".join(plan_as_text(plan, RenderOptions(style=Style(width=80))).splitlines()[:24])


def test_r14_one_value_that_changes_otherwise_has_its_own_entry_first() -> None:
    def moved_to(number: int) -> str:
        return "../payroll/" if number == 33 else f"v2/web/{number}/"

    numbers = range(50)
    wanted = [export(f"x{n}", destination=s3(prefix=moved_to(n))) for n in numbers]
    live = [live_export(f"e{n}", f"X{n}", destination=s3(prefix=f"web/{n}/")) for n in numbers]
    plan = planned(desired_of(project(), *wanted), live_of(live_project(), *live))
    assert '"web/33/" -> "../payroll/"' in first_screen(plan)
    assert '49 values, such as "web/0/" -> "v2/web/0/"' in first_screen(plan)


@pytest.mark.parametrize(
    ("odd", "shown"), [({"interval": "day"}, "day"), ({"paused": True}, "paused")]
)
def test_r14_one_new_object_that_differs_has_its_own_entry_first(
    odd: dict[str, Any], shown: str
) -> None:
    wanted = [export(f"x{n}", **(odd if n == 3 else {})) for n in range(8)]
    text = first_screen(planned(desired_of(project(), *wanted), live_of(live_project())))
    assert "  + 7 batch exports in Web" in text
    assert shown in text[text.index("  + batch_export.x3") : text.index("  + 7 batch")]


def test_a_long_name_does_not_hide_a_danger() -> None:
    names = ["Long " + "n" * 1_700, "Old" + " " * 60 + "0 dangers"]
    gone = [export(f"x{n}", name=name, state=State.ABSENT) for n, name in enumerate(names)]
    live = [live_export(f"e{n}", name) for n, name in enumerate(names)]
    plan = planned(desired_of(project(), *gone), live_of(live_project(), *live))
    assert "history of runs" in " ".join(first_screen(plan).split())
    alone = replace(plan, changes=plan.changes[1:])
    assert 'batch_export.x1 "Old 0 dangers" in Web' in plan_as_text(alone)


def test_r10_the_danger_of_a_second_environment_is_among_the_first() -> None:
    last = [[{"created_at": f"2026-06-{day:02}T00:00:00Z"}] for day in range(1, 21)]
    live = [live_export(f"e{n}", f"X{n}", latest_runs=runs) for n, runs in enumerate(last)]
    gone = [export(f"x{n}", state=State.ABSENT) for n in range(20)]
    first = planned(desired_of(project(), *gone), live_of(live_project(), *live))
    second = exports(1, {"state": State.ABSENT})
    plans = [OfEnvironment("dev", first), OfEnvironment("production", second)]
    text = plans_as_text(plans, RenderOptions(style=Style(width=80)))
    assert "21 dangers" in text.splitlines()[0]
    assert any(re.search(r"!! production.*x0: its", line) for line in text.splitlines()[:14])
    comment = plans_as_markdown(plans)
    assert "### 2 environments · 21 dangers" in comment
    assert re.search(r"> - production.*x0: its", comment[:1_500])
