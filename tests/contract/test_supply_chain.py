"""Constraints agree with what reconciler requires."""

from __future__ import annotations

import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
