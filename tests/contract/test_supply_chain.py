"""Constraints, the bill of materials and the audit agree with what reconciler requires."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.audit import report
from scripts.sbom import bill
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUNTIME = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = [
    Requirement(text) for texts in PROJECT["optional-dependencies"].values() for text in texts
]


def test_security_21_every_dependency_has_an_exact_version_that_is_allowed() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert list(pins) == sorted(pins)
    for required in (*RUNTIME, *EXTRAS):
        if required.name != "posthog-reconciler":
            assert required.specifier.contains(pins[canonicalize_name(required.name)])


def test_security_21_the_bill_of_materials_lists_what_is_needed_at_runtime() -> None:
    materials = bill()
    assert (materials["bomFormat"], materials["specVersion"]) == ("CycloneDX", "1.6")
    names = {component["name"] for component in materials["components"]}
    expected = {
        canonicalize_name(required.name)
        for required in RUNTIME
        if required.marker is None or required.marker.evaluate()
    }
    assert expected <= names
    assert not {"pytest", "ruff", "starlette"} & names
    refs = [component["bom-ref"] for component in materials["components"]]
    refs.append(materials["metadata"]["component"]["bom-ref"])
    assert len(set(refs)) == len(refs)
    edges = {entry["ref"]: entry["dependsOn"] for entry in materials["dependencies"]}
    assert edges.keys() == set(refs)
    assert {needed for needs in edges.values() for needed in needs} <= set(refs)


def test_the_audit_does_not_count_what_the_database_does_not_know(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unknown = {"name": "b", "skip_reason": "not in the database"}
    for required in (False, True):
        assert report([unknown], required=required) == required
        assert "skipped" in capsys.readouterr().out
    vulnerable = {
        "name": "a",
        "version": "1",
        "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}],
    }
    assert report([vulnerable, unknown], required=False) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a 1: PYSEC-1, fixed in 2",
        "Audit: 1 of 2 dependencies checked, known vulnerabilities: 1.",
    ]
