"""Options that name objects: address, id, key, name or glob; what matches nothing is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import s3, seed, workspace
from tests.support.emulator import RunningEmulator
from tests.support.simulated import no_op_export

SECRETS = {"RECONCILER_SECRET_USER": "u-s-e-r", "RECONCILER_SECRET_PASSWORD": "pass-word"}
S3 = s3(*(f"${{secret:env:{name}}}" for name in SECRETS))
PROJECTS = {"web": {"name": "Team 03"}, "app": {"name": "App"}}


def resources(settings: str = "", **exports: dict[str, Any]) -> dict[str, str]:
    lake = {"web-lake": {"name": "Events to the lake", "interval": "day"}}
    orders = {"name": "Orders", "project": "app", **S3}
    return workspace(settings, PROJECTS, **lake, orders=orders, **exports)


@pytest.fixture
def service(service_of: StartService) -> RunningEmulator:
    exports = {"Team 03": ["Events to the lake", "Hand-made"], "App": ["Shared"]}
    projects = [
        {"id": number, "name": name, "batch_exports": [no_op_export(own) for own in exports[name]]}
        for number, name in enumerate(exports, start=1)
    ]
    return service_of(seed(*projects))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", resources())


def run(folder: Path, service: RunningEmulator, *arguments: str | Path) -> Ran:
    return reconciler(*arguments, "-C", folder, environ={**service.environ(), **SECRETS})


PLAN = ("plan", "--detailed-exitcode")
APPLY = ("apply", "--auto-approve")
BACKFILL = ("backfill", "--gaps", "--auto-approve")
NOTHING = [
    (("--target", "batch_export.web-lakee"), "'batch_export.web-lakee'", "web-lake?"),
    (("--target", "web-lakee"), "nothing matches 'web-lakee'", "batch_export.web-lake?"),
    (("--project", "Webb"), "nothing matches 'Webb'", "did you mean project.web?"),
    (("--project", "Team 04"), "nothing matches 'Team 04'", "did you mean project.web?"),
    (("--kind", "exports"), "unknown kind 'exports'", "did you mean 'batch_export'?"),
    (("--exclude", "x*"), "nothing matches 'x*'", "an address (kind.key), an id"),
    (("--rotate-secrets=batch_export.nope*",), "nothing matches 'batch_export.nope*'", "known"),
    (("--target", "Hand-made"), '"Hand-made" (batch_export.id:', "`reconciler import "),
    (("--target", "web-lake", "--kind", "project"), "the options select no resource", ""),
]
"""Options that select nothing, the message, and a part of the hint."""


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        *((PLAN + option, *rest) for option, *rest in NOTHING),
        *((APPLY + option, *rest) for option, *rest in NOTHING),
        (("import", "--project", "Ap"), "", "did you mean project.app?"),
        (("import", "Shared", "Hand-mad"), "", 'did you mean "Hand-made" ('),
        (("import", "nope"), "nothing matches 'nope'", ""),
        (("import", "--kind", "dashboards"), "unknown kind 'dashboards'", ""),
        (("import", "--project", "app", "Hand-made"), "no live object matches app, Hand-made", ""),
        ((*BACKFILL, "web-lakee"), "", "did you mean batch_export.web-lake?"),
        ((*BACKFILL, "project.web"), "nothing matches", ""),
        ((*BACKFILL, "batch_export.orders"), "does not exist yet", ""),
        (("show", "*"), "batch_export.orders, batch_export.web-lake, project.app", ""),
        (("show", "Team 04"), "", "did you mean project.web?"),
    ],
)
def test_experience_1_16_what_names_nothing_or_too_much_is_a_usage_error(
    folder: Path, service: RunningEmulator, words: tuple[str, ...], message: str, hint: str
) -> None:
    before = sorted(folder.iterdir())
    ran = run(folder, service, *words)
    assert ran.code == (1 if "yet" in message else 64)
    assert message in ran.err
    assert hint in " ".join(ran.err.split())
    assert "No changes" not in ran.out
    assert service.writes() == []
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "code", "written"),
    [
        (("status", "--fail-on", "never-run"), 1, 0),
        (("status", "-e", "*"), 1, 0),
        (("gaps",), 1, 0),
        (("runs",), 1, 0),
        (("pause", "-y"), 3, 1),
        (("pause", "--dry-run"), 1, 0),
        (("backfill", "--from", "2026-01-01", "--to", "2026-01-02", "-y"), 3, 1),
        ((*BACKFILL, "--dry-run"), 1, 0),
    ],
)
def test_a_resource_that_does_not_exist_yet_hides_no_other(
    folder: Path, service: RunningEmulator, words: tuple[str, ...], code: int, written: int
) -> None:
    ran = run(folder, service, *words, "orders,Shared", "batch_export.orders")
    assert (ran.code, len(service.writes())) == (code, written), ran.err
    problem = "error: batch_export.orders does not exist yet\n  hint: apply it first\n"
    assert ran.err.count(problem) == 1
    where = "default: " if "-e" in words else ""
    assert ran.err.count(f"note: {where}batch_export.orders does not exist yet\n") == 1
    assert '"Shared"' in ran.out


def test_experience_33_mistakes_are_reported_before_anything_is_read(tmp_path: Path) -> None:
    for command in ("plan", "apply", "import"):
        ran = reconciler(command, "-C", tmp_path / "missing", "--kind", "exports")
        assert (ran.code, "did you mean 'batch_export'?" in ran.err) == (64, True)
    ran = reconciler("apply", "-C", tmp_path)
    assert (ran.code, "reconciler.yaml" in ran.err, "terminal" in ran.err) == (1, True, False)


def test_a_resource_of_another_environment_is_reported_as_such(
    service: RunningEmulator, tmp_path: Path
) -> None:
    environments = "default: live\nenvironments: {live: {}, test: {}}\n"
    folder = write(tmp_path, resources(environments, ocean={"environments": ["test"]}))
    ran = run(folder, service, "plan", "--target", "ocean")
    assert ran.code == 64
    assert "batch_export.ocean is not in environment live" in ran.err


def test_a_saved_plan_is_stale_if_a_name_of_its_selection_means_more(
    folder: Path, service: RunningEmulator, tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    only = ("--target", "Shared", "--target", "web-lake")
    shared = {"name": "Shared", "project": "app", "interval": "week"}
    write(folder, resources(shared=shared))
    assert run(folder, service, "plan", *only, "--out", saved).code == 0
    write(folder, resources(shared=shared, other={"name": "Shared"}))
    service.clear_requests()
    ran = run(folder, service, "apply", saved)
    assert ran.code == 4
    assert "batch_export.other" in ran.err
    assert service.writes() == []


def test_a_saved_plan_is_applied_again_although_it_renamed_its_target(
    folder: Path, service: RunningEmulator, tmp_path: Path
) -> None:
    """Its second plan and a second run select what was planned, under the new name, too."""
    saved, lifecycle = tmp_path / "plan.json", {"renamed_from": ["Shared"]}
    renamed = {"name": "New", "project": "app", "paused": True, "lifecycle": lifecycle}
    write(folder, resources(shared=renamed))
    assert run(folder, service, "plan", "--target", "Shared", "--out", saved).code == 0
    service.fail(method="POST", path="*/pause/", nth=1)
    assert run(folder, service, "apply", saved).code == 3
    assert run(folder, service, "apply", saved).code == 0
    assert service.exports()["New"]["paused"] is True
    again = run(folder, service, "apply", saved)
    assert (again.code, "No changes" in again.out) == (0, True), again.err


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("gaps",),
        ("pause", "--auto-approve"),
        ("backfill", "--from", "2026-01-01", "--to", "2026-01-02", "--dry-run"),
        ("plan", "--target"),
        ("import", "--dry-run"),
    ],
)
def test_i14_a_comma_list_is_one_for_arguments_and_options(
    words: tuple[str, ...], folder: Path, service: RunningEmulator
) -> None:
    """I14: options split `lake,orders`, arguments took it for a name."""
    ran = run(folder, service, *words, "web-lake,Events to the lake")
    assert ran.code in (0, 2), ran.err
    unknown = run(folder, service, *words, "web-lake,no-such")
    assert (unknown.code, "'no-such'" in unknown.err) == (64, True), unknown.err
