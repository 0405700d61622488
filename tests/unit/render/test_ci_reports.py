"""Test the reports that CI systems read: GitLab and SARIF."""

from __future__ import annotations

import json

from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.model.plan import Plan, Refusal
from reconciler.render import writer_of
from reconciler.render.ci_reports import diagnostics_as_gitlab, plan_as_gitlab
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

ROOT = RenderOptions(root="infra")
HOSTILE = '::error::a ##[x] <b> "q" &amp; ]]> \x1b[2J\x00\u2028\ufffe'


def wrong(message: str, at: Mark | None = None, level: Level = Level.ERROR) -> Diagnostic:
    return Diagnostic("unknown-field", level, message, at, "fix it")


def changing() -> Plan:
    """Return a plan that creates an export, and updates and pauses another."""
    created = export("new", destination=s3(bucket_name="new"))
    resources = (project(), created, export(interval="day", paused=True))
    return planned(desired_of(*resources), live_of(live_project(), live_export()))


def refused() -> Plan:
    violations = (
        Refusal("max_deletes", "too many", at=Mark("reconciler.yaml", 9, 16), allow="raise it"),
        Refusal("prune", HOSTILE, after_merge=True),
    )
    return replace(changing(), refusals=violations)


def test_gitlab_counts_resources() -> None:
    assert plan_as_gitlab(changing()) == '{"create": 1, "update": 1, "delete": 0}\n'


def test_code_quality_has_what_gitlab_requires() -> None:
    diagnostics = [wrong("a", Mark("a.yaml", 3)), wrong("b", level=Level.WARNING)]
    issues = json.loads(diagnostics_as_gitlab(diagnostics, ROOT))
    assert [issue["severity"] for issue in issues] == ["major", "minor"]
    assert [issue["check_name"] for issue in issues] == ["unknown-field"] * 2
    assert issues[0]["description"] == "a\nhint: fix it"
    assert issues[0]["location"] == {"path": "infra/a.yaml", "lines": {"begin": 3}}
    assert issues[1]["location"]["path"] == "infra/reconciler.yaml"
    assert json.loads(diagnostics_as_gitlab([])) == []


def test_a_fingerprint_does_not_depend_on_the_line_and_is_unique() -> None:
    def fingerprints(*lines: int) -> list[str]:
        diagnostics = [wrong("a", Mark("a.yaml", line)) for line in lines]
        return [issue["fingerprint"] for issue in json.loads(diagnostics_as_gitlab(diagnostics))]

    assert fingerprints(3, 9) == fingerprints(4, 12)
    assert len(set(fingerprints(3, 9))) == 2
    other = json.loads(diagnostics_as_gitlab([wrong("a", Mark("b.yaml", 3))]))
    assert other[0]["fingerprint"] not in fingerprints(3, 9)


def test_violations_of_a_plan_are_results() -> None:
    log = json.loads(writer_of("sarif", "plan")(refused(), ROOT))
    results = log["runs"][0]["results"]
    assert [(item["ruleId"], item["level"]) for item in results] == [
        ("new-bucket", "warning"),
        ("max_deletes", "error"),
        ("prune", "warning"),
    ]
    region = results[1]["locations"][0]["physicalLocation"]
    assert region["artifactLocation"]["uri"] == "infra/reconciler.yaml"
    assert region["region"]["startLine"] == 9


def test_hostile_text_stays_text() -> None:
    assert "##[" not in diagnostics_as_gitlab([wrong(HOSTILE)])
