"""A known secret in live text appears in no report, whatever its command and format."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.render import formats_of
from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.simulated import start_simulated

SECRET = "hunter2-" + "x7Q" * 40
"""Longer than any limit to which texts are shortened."""
REPORTS = {
    "status": ("status", "--all", "--links"),
    "gaps": ("gaps", "--from", "2026-10-20", "--to", "2026-10-21"),
    "runs": ("runs", "EXPORT", "--links"),
    "logs": ("logs", "EXPORT"),
    "statuses": ("status", "-e", "*", "--all"),
    "all_gaps": ("gaps", "-e", "*"),
    "projects": ("projects", "list"),
    "project_details": ("projects", "show", "1"),
    "health": ("doctor", "lake", "--auto-approve"),
    "imported": ("import", "--dry-run"),
    "compared": ("compare", "one", "two", "--verbose"),
    "resolved": ("show", "lake"),
}
WORKSPACE = "version: 1\nenvironments: {one: {}, two: {}}\ndefault: one\nvars: {plain: SECRET}\n"
RESOURCES = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake ${var:plain}
    interval: hour
    destination: {type: HTTP, config: {url: https://eu.i.posthog.com/batch/, token: TOKEN}}
    overrides: {two: {interval: day}}
"""


@pytest.fixture(scope="module")
def world(
    service_of: StartService, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str], str]:
    folder = tmp_path_factory.mktemp("masked")
    simulated = start_simulated(service_of, folder, "2026")
    export = simulated.create(f"Live {SECRET}")
    failing = {"match": {}, "status": "Failed", "error": f"denied: {SECRET}"}
    simulated.service.admin("PUT", "outcomes", [failing])
    simulated.service.advance(hours=3)
    token = '"${secret:env:RECONCILER_SECRET_TOKEN}"'
    resources = RESOURCES.replace("TOKEN", token)
    write(folder, {"reconciler.yaml": WORKSPACE.replace("SECRET", SECRET), "a.yaml": resources})
    environ = {**simulated.service.environ(), "RECONCILER_SECRET_TOKEN": SECRET}
    return folder, environ, export


@pytest.mark.parametrize(
    ("result", "name"), [(result, name) for result in REPORTS for name in formats_of(result)]
)
def test_a_known_secret_is_masked_in_every_report(
    world: tuple[Path, dict[str, str], str], result: str, name: str
) -> None:
    folder, environ, export = world
    words = [export if word == "EXPORT" else word for word in REPORTS[result]]
    ran = reconciler(*words, "-C", folder, "--format", name, environ=environ)
    assert ran.out, ran.err
    assert "x7Q" not in ran.out + ran.err
    if result not in ("health", "projects", "project_details", "imported"):
        assert "***" in ran.out or "&#42;" in ran.out
