"""SARIF: what code scanning needs to show a result where it is, and to say what its rule means."""

from __future__ import annotations

import re
from typing import Any

import orjson

from reconciler.codes import CODES, meaning
from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.render.formats.sarif import diagnostics_as_sarif
from reconciler.version import __version__
from tests.conftest import ROOT
from tests.unit.render.test_diagnostics import HOSTILE, breaking, hostile, wrong


def run_of(*found: Diagnostic, root: str = "") -> dict[str, Any]:
    log = orjson.loads(diagnostics_as_sarif(found, root=root))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    return run


def test_a_result_names_its_place_and_the_related_ones() -> None:
    related = ((Mark("b.yaml", 9, 2, 4), "it is declared here first"),)
    at = Mark("exports/a.yaml", 3, 5, 7)
    run = run_of(wrong("wrong", at, hint="mend ${var:x}", related=related), root="infra")
    (result,) = run["results"]
    root = "%SRCROOT%"
    assert result == {
        "ruleId": "unknown-field",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "wrong\nmend ${var:x}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "infra/exports/a.yaml", "uriBaseId": root},
                    "region": {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 12},
                }
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "message": {"text": "it is declared here first"},
                "physicalLocation": {
                    "artifactLocation": {"uri": "infra/b.yaml", "uriBaseId": root},
                    "region": {"startLine": 9, "startColumn": 2, "endLine": 9, "endColumn": 6},
                },
            }
        ],
    }
    assert root in run["originalUriBaseIds"]
    assert run["columnKind"] == "unicodeCodePoints"


def test_addresses_of_files_are_encoded() -> None:
    names = {
        "a b/ü#?%20[x].yaml": "a%20b/%C3%BC%23%3F%2520%5Bx%5D.yaml",
        "c:d\\e.yaml": "c%3Ad%5Ce.yaml",
        "not-utf8-\udcff.yaml": "not-utf8-%FF.yaml",
        "\x1b[2J.yaml": "%1B%5B2J.yaml",
    }
    marks = [Mark(name) for name in names]
    run = run_of(*(wrong(at=at, related=((at, "here"),)) for at in marks))
    for each, expected in zip(run["results"], names.values(), strict=True):
        for place in (each["locations"][0], each["relatedLocations"][0]):
            assert place["physicalLocation"]["artifactLocation"]["uri"] == expected


def test_every_code_is_one_rule_of_the_run() -> None:
    other = Diagnostic("wrong-order", Severity.WARNING, "x")
    run = run_of(other, wrong(), wrong(severity=Severity.WARNING))
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("reconciler", __version__)
    assert [each["id"] for each in driver["rules"]] == ["unknown-field", "wrong-order"]
    assert [each["ruleIndex"] for each in run["results"]] == [1, 0, 0]
    assert [each["level"] for each in run["results"]] == ["warning", "error", "warning"]
    first = driver["rules"][0]
    assert first["shortDescription"]["text"] == "An unknown field."
    assert first["help"]["text"] == "Correct its name or remove it."
    assert first["defaultConfiguration"]["level"] == "error"


def test_an_empty_run_is_a_run() -> None:
    run = run_of()
    assert run["results"] == run["tool"]["driver"]["rules"] == []


def test_it_holds_the_text_itself_and_can_not_control_a_terminal() -> None:
    told = diagnostics_as_sarif([hostile(), wrong("half a pair: \ud800")])
    assert not breaking(told)
    first = orjson.loads(told)["runs"][0]["results"][0]
    assert first["message"]["text"] == f"{HOSTILE}\n{HOSTILE}"
    assert first["relatedLocations"][0]["message"]["text"] == HOSTILE


def test_every_code_that_is_told_has_a_rule_and_every_rule_a_code() -> None:
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("workspace", "authoring", "providers", "kinds", "commands")
        for path in (ROOT / "reconciler" / folder).rglob("*.py")
    )
    told = re.findall(r'(?:\.|_)(?:error|warning|refuse)\(\s*"([a-z0-9-]+)"', sources)
    assert sorted(set(told) - set(CODES)) == []
    assert sorted(code for code in CODES if f'"{code}"' not in sources) == []


def test_a_rule_that_nobody_described_is_told_by_its_code() -> None:
    assert meaning("quite-new").title == "Quite new"
