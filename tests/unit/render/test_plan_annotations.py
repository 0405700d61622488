"""Test plans as annotations of GitHub."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.plan import Plan, Refusal
from reconciler.model.resource import Resource
from reconciler.model.settings import Policy
from reconciler.render.ci_reports import plan_as_github
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

MOST = 10
ROOT = RenderOptions(root="infra")


def placed(resource: Resource, line: int) -> Resource:
    return replace(resource, mark=Mark("a.yaml", line, 3, 4))


def many(count: int) -> Plan:
    """Return a plan that changes every export in its own way, and deletes one."""
    numbers = range(count)
    resources = [
        placed(
            export(f"e{number}", name=f"e{number}", destination=s3(max_file_size_mb=number + 1)),
            number,
        )
        for number in numbers
    ]
    gone = export("gone", name="gone")
    live = [live_export(f"id{number}", f"e{number}") for number in numbers]
    return planned(
        desired_of(project(), *resources),
        live_of(live_project(), *live, live_export("gone", "gone")),
        Policy(prune=True),
        base=desired_of(project(), *(export(f"e{n}", name=f"e{n}") for n in numbers), gone),
    )


def kinds(text: str) -> list[str]:
    return [line[2:].split(" ")[0] for line in text.splitlines() if line.startswith("::")]


def test_a_change_is_annotated_at_its_line() -> None:
    assert plan_as_github(many(1), ROOT).splitlines() == [
        (
            "::warning title=1 danger::delete batch_export.gone in Web  its history of runs and "
            "logs is lost and running backfills are cancelled; exported data stays at the "
            "destination"
        ),
        (
            "::warning title=delete::delete batch_export.gone in Web%0A!! history-lost: its "
            "history of runs and logs is lost and running backfills are cancelled; exported data "
            "stays at the destination"
        ),
        (
            "::notice file=infra/a.yaml,line=0,col=3,endColumn=7,title=update::"
            "update batch_export.e0%0Adestination.config.max_file_size_mb: null → 1"
        ),
        "Plan: 0 to create, 1 to update, 1 to delete, 1 unchanged (3 resources).",
    ]


def test_ten_of_each_kind_are_shown_and_the_rest_is_counted() -> None:
    plan = many(2_000)
    violations = tuple(Refusal("rule", f"violation {number}") for number in range(12))
    text = plan_as_github(replace(plan, refusals=violations))
    assert kinds(text) == ["warning"] + ["error"] * MOST + ["warning"] + ["notice"]
    assert text.splitlines()[-2:] == [
        "2 more errors",
        "Plan: 0 to create, 2,000 to update, 1 to delete, 1 unchanged (2,002 resources).",
    ]


def test_dangers_come_before_warnings() -> None:
    plan = many(3)
    lake = export("lake", interval="day", destination=s3(prefix="q/"))
    moved = planned(desired_of(project(), lake), live_of(live_project(), live_export("e1", "Lake")))
    both = replace(plan, changes=(*moved.effective, *plan.changes))
    text = plan_as_github(both)
    assert kinds(text) == ["warning", "warning", "warning", "notice", "notice", "notice"]
    assert text.startswith("::warning title=1 danger::")


def test_a_violation_is_annotated_at_its_rule() -> None:
    at = Mark("reconciler.yaml", 9, 16, 1)
    violations = (
        Refusal("max_deletes", "too many", at=at, allow="raise it"),
        Refusal("prune", "loosened", after_merge=True),
    )
    lines = plan_as_github(replace(many(0), refusals=violations), ROOT).splitlines()
    assert lines[1] == (
        "::error file=infra/reconciler.yaml,line=9,col=16,endColumn=17,title=max_deletes::"
        "too many%0Ahint: raise it"
    )
    assert lines[2] == "::warning title=prune::takes effect after the merge: loosened"
