"""Test the SARIF log."""

from __future__ import annotations

import re
from typing import Any

import orjson

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.errors import codes, meaning
from reconciler.model.text import printable
from reconciler.render.ci_reports import diagnostics_as_sarif
from reconciler.render.options import RenderOptions
from reconciler.version import __version__
from tests.conftest import ROOT
from tests.unit.render.test_diagnostics import HOSTILE, breaking, hostile, wrong


def run_of(*diagnostics: Diagnostic, root: str = "") -> dict[str, Any]:
    log = orjson.loads(diagnostics_as_sarif(diagnostics, RenderOptions(root=root)))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    return run


def test_a_result_has_its_place_and_related_places() -> None:
    related = ((Mark("b.yaml", 9, 2, 4), "first defined here"),)
    at = Mark("exports/a.yaml", 3, 5, 7)
    run = run_of(wrong("wrong", at, hint="remove ${var:x}", related=related), root="infra")
    (result,) = run["results"]
    root = "%SRCROOT%"
    assert result == {
        "ruleId": "unknown-field",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "wrong\nhint: remove ${var:x}"},
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
                "message": {"text": "first defined here"},
                "physicalLocation": {
                    "artifactLocation": {"uri": "infra/b.yaml", "uriBaseId": root},
                    "region": {"startLine": 9, "startColumn": 2, "endLine": 9, "endColumn": 6},
                },
            }
        ],
    }
    assert root in run["originalUriBaseIds"]
    assert run["columnKind"] == "unicodeCodePoints"


def test_file_names_are_encoded_as_uris() -> None:
    names = {
        "a b/ü#?%20[x].yaml": "a%20b/%C3%BC%23%3F%2520%5Bx%5D.yaml",
        "c:d\\e.yaml": "c%3Ad%5Ce.yaml",
        "not-utf8-\udcff.yaml": "not-utf8-%FF.yaml",
        "\x1b[2J.yaml": "%1B%5B2J.yaml",
    }
    marks = [Mark(name) for name in names]
    run = run_of(*(wrong(at=at, related=((at, "here"),)) for at in marks))
    for result, expected in zip(run["results"], names.values(), strict=True):
        for place in (result["locations"][0], result["relatedLocations"][0]):
            assert place["physicalLocation"]["artifactLocation"]["uri"] == expected


def test_every_code_is_a_rule() -> None:
    other = Diagnostic("wrong-order", Level.WARNING, "x")
    run = run_of(other, wrong(), wrong(level=Level.WARNING))
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("reconciler", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["unknown-field", "wrong-order"]
    assert [result["ruleIndex"] for result in run["results"]] == [1, 0, 0]
    assert [result["level"] for result in run["results"]] == ["warning", "error", "warning"]
    first = driver["rules"][0]
    assert first["shortDescription"]["text"] == "An unknown field."
    assert first["help"]["text"] == "Correct its name or remove it."
    assert first["defaultConfiguration"]["level"] == "error"


def test_a_run_without_results_is_valid() -> None:
    run = run_of()
    assert run["results"] == run["tool"]["driver"]["rules"] == []


def test_control_characters_are_escaped() -> None:
    text = diagnostics_as_sarif([hostile(), wrong("half a pair: \ud800")])
    assert not breaking(text)
    first = orjson.loads(text)["runs"][0]["results"][0]
    assert first["message"]["text"] == f"{printable(HOSTILE)}\nhint: {printable(HOSTILE)}"
    assert first["relatedLocations"][0]["message"]["text"] == printable(HOSTILE)


def test_codes_in_use_and_described_codes_are_the_same() -> None:
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("files", "git", "editing", "providers", "kinds", "commands")
        for path in (
            *(ROOT / "reconciler" / folder).rglob("*.py"),
            ROOT / "reconciler/diagnostics.py",
        )
        # The checks of `doctor` have names, not codes.
        if path.parent.name != "doctor"
    )
    used = re.findall(r'(?:\.|_)(?:error|warning|refuse)\(\s*"([a-z0-9-]+)"', sources)
    assert sorted(set(used) - set(codes())) == []
    assert sorted(code for code in codes() if f'"{code}"' not in sources) == []


def test_the_title_of_an_undescribed_code_is_the_code() -> None:
    assert meaning("quite-new").title == "Quite new"
