"""Test annotations of GitHub, SARIF logs and reports of GitLab."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.errors import codes, meaning
from reconciler.model.plan import Refusal
from reconciler.render import writer_of
from reconciler.render.ci_reports import (
    diagnostics_as_github,
    diagnostics_as_gitlab,
    diagnostics_as_sarif,
    plan_as_github,
)
from reconciler.render.options import RenderOptions
from tests.conftest import ROOT as REPOSITORY
from tests.support.worlds import s3
from tests.unit.render.plans import exports
from tests.unit.render.test_diagnostics import breaking, hostile, wrong

ROOT = RenderOptions(root="infra")
MARKUP = '::error::a ##[x] <b> "q" &amp; ]]> \x1b[2J\x00\u2028\ufffe'


def test_annotations_have_errors_first_and_counts_last() -> None:
    diagnostics = [
        wrong("doubtful", Mark("a.yaml", 1, 2, 3), level=Level.WARNING),
        wrong("wrong", Mark("b.yaml", 4, 5, 6), hint="fix", related=((Mark("c.yaml", 7), "it"),)),
        wrong("x"),
    ]
    assert diagnostics_as_github(diagnostics, ROOT) == (
        "::error file=infra/b.yaml,line=4,col=5,endColumn=11,title=unknown-field::wrong%0A"
        "hint: fix%0Ainfra/c.yaml:7:1: it\n"
        "::error title=unknown-field::x\n"
        "::warning file=infra/a.yaml,line=1,col=2,endColumn=5,title=unknown-field::doubtful\n"
        "2 errors, 1 warning in 2 files\n"
    )
    assert diagnostics_as_github([]) == ""
    many = diagnostics_as_github([*[diagnostics[0]] * 2, *[wrong()] * 100]).splitlines()
    assert many[99:101] == [
        "::error title=unknown-field::unknown field 'x'",
        "2 more: 2 unknown-field",
    ]


def test_text_cannot_start_a_command_or_end_a_property() -> None:
    forged = wrong("100%0A::error::x\r\n::add-mask::y", Mark("a,line=1:b%.yaml"))
    text = diagnostics_as_github([hostile(), forged])
    assert len(text.splitlines()) == 3
    assert not breaking(text)
    assert "100%250A::error::x\\r\\n::add-mask::y" in text
    assert "file=a%2Cline=1%3Ab%25.yaml,line=1," in text


def test_ten_of_each_kind_are_shown_and_the_rest_is_counted() -> None:
    plan = exports(400, lambda number: {"destination": s3(max_file_size_mb=number + 1)}, {})
    violations = tuple(Refusal("rule", f"violation {number}") for number in range(12))
    text = plan_as_github(replace(plan, refusals=violations))
    kinds = [line[2:].split(" ")[0] for line in text.splitlines() if line.startswith("::")]
    assert kinds == ["error"] * 10 + ["notice"]
    assert text.splitlines()[-2:] == [
        "2 more errors",
        "Plan: 0 to create, 400 to update, 0 to delete, 1 unchanged (401 resources).",
    ]


def test_a_violation_is_a_result_and_one_after_the_merge_a_warning() -> None:
    violations = (
        Refusal("max_deletes", "too many", at=Mark("reconciler.yaml", 9, 16, 1)),
        Refusal("prune", MARKUP, after_merge=True),
    )
    plan = replace(exports(1, {"destination": s3(bucket_name="new")}), refusals=violations)
    after = "\n::warning title=prune::takes effect after the merge: ::error::a "
    assert after in plan_as_github(plan, ROOT)
    log = json.loads(writer_of("sarif", "plan")(plan, ROOT))
    results = log["runs"][0]["results"]
    assert [(item["ruleId"], item["level"]) for item in results] == [
        ("new-bucket", "warning"),
        ("max_deletes", "error"),
        ("prune", "warning"),
    ]
    region = results[1]["locations"][0]["physicalLocation"]
    assert region["artifactLocation"]["uri"] == "infra/reconciler.yaml"
    assert region["region"]["startLine"] == 9


def test_code_quality_has_what_gitlab_requires() -> None:
    first = wrong("a", Mark("a.yaml", 3), hint="fix it")
    issues = json.loads(diagnostics_as_gitlab([first, wrong("b", level=Level.WARNING)], ROOT))
    assert [issue["severity"] for issue in issues] == ["major", "minor"]
    assert issues[0]["description"] == "a\nhint: fix it"
    assert issues[0]["location"] == {"path": "infra/a.yaml", "lines": {"begin": 3}}
    assert issues[1]["location"]["path"] == "infra/reconciler.yaml"
    assert "##[" not in diagnostics_as_gitlab([wrong(MARKUP)])


def test_a_fingerprint_does_not_depend_on_the_line_and_is_unique() -> None:
    def fingerprints(*lines: int, file: str = "a.yaml") -> list[str]:
        diagnostics = [wrong("a", Mark(file, line)) for line in lines]
        return [issue["fingerprint"] for issue in json.loads(diagnostics_as_gitlab(diagnostics))]

    assert fingerprints(3, 9) == fingerprints(4, 12)
    assert len({*fingerprints(3, 9), *fingerprints(3, file="b.yaml")}) == 3


def run_of(*diagnostics: Diagnostic, root: str = "") -> dict[str, Any]:
    log = orjson.loads(diagnostics_as_sarif(diagnostics, RenderOptions(root=root)))
    (run,) = log["runs"]
    assert "%SRCROOT%" in run["originalUriBaseIds"]
    assert run["columnKind"] == "unicodeCodePoints"
    return run


def test_a_result_has_its_place_and_related_places() -> None:
    def place(file: str, line: int, start: int, end: int) -> dict[str, Any]:
        region = {"startLine": line, "startColumn": start, "endLine": line, "endColumn": end}
        artifact = {"uri": file, "uriBaseId": "%SRCROOT%"}
        return {"physicalLocation": {"artifactLocation": artifact, "region": region}}

    related = ((Mark("b.yaml", 9, 2, 4), "first defined here"),)
    at = Mark("exports/a.yaml", 3, 5, 7)
    run = run_of(wrong("wrong", at, hint="remove ${var:x}", related=related), root="infra")
    here = {"id": 1, "message": {"text": "first defined here"}, **place("infra/b.yaml", 9, 2, 6)}
    assert run["results"] == [
        {
            "ruleId": "unknown-field",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": "wrong\nhint: remove ${var:x}"},
            "locations": [place("infra/exports/a.yaml", 3, 5, 12)],
            "relatedLocations": [here],
        }
    ]


def test_file_names_are_encoded_as_uris() -> None:
    names = {
        "a b/ü#?%20[x]c:d\\e\x1b": "a%20b/%C3%BC%23%3F%2520%5Bx%5Dc%3Ad%5Ce%1B",
        "not-utf8-\udcff.yaml": "not-utf8-%FF.yaml",
    }
    run = run_of(*(wrong(at=Mark(name), related=((Mark(name), "here"),)) for name in names))
    for result, expected in zip(run["results"], names.values(), strict=True):
        for place in (result["locations"][0], result["relatedLocations"][0]):
            assert place["physicalLocation"]["artifactLocation"]["uri"] == expected


def test_every_code_is_a_rule() -> None:
    run = run_of(Diagnostic("wrong-order", Level.WARNING, "x"), wrong())
    first, second = run["tool"]["driver"]["rules"]
    assert (first["id"], second["id"]) == ("unknown-field", "wrong-order")
    assert [result["ruleIndex"] for result in run["results"]] == [1, 0]
    assert first["help"]["text"] == "Correct its name or remove it."
    assert run_of()["results"] == []


def test_codes_in_use_and_described_codes_are_the_same() -> None:
    sources = (REPOSITORY / "reconciler/diagnostics.py").read_text(encoding="utf-8")
    for folder in ("files", "git", "editing", "providers", "kinds", "commands"):
        for path in (REPOSITORY / "reconciler" / folder).rglob("*.py"):
            # The checks of `doctor` have names, not codes.
            sources += "" if path.parent.name == "doctor" else path.read_text(encoding="utf-8")
    used = re.findall(r'(?:\.|_)(?:error|warning|refuse)\(\s*"([a-z0-9-]+)"', sources)
    assert sorted(set(used) - set(codes())) == []
    assert sorted(code for code in codes() if f'"{code}"' not in sources) == []
    assert meaning("quite-new").title == "Quite new"
