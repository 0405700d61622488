"""`runs --retry` and `--cancel` in simulated time: each request is sent once and accounted for."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.commands.recording import Outputs
from reconciler.errors import BadUsage, Invalid, NotFound
from reconciler.model.audit_log import read_log
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.run import Run
from reconciler.operations.backfills import Backfilled, BackfillRequest, Retries, Screen, backfill
from reconciler.operations.gaps import GapRequest, gaps
from reconciler.operations.runs import RunsRequest, cancel_run, runs
from reconciler.reading.calls import NotOffered
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler
from tests.support.simulated import Simulated, start_simulated

start = partial(start_simulated, auto_pause=False)
WITH_RETRY = ("2025", "2026")
FAILED = {"status": "Failed", "error": "Access denied."}
LOST = {"match": {"method": "POST", "path": "*/retry/", "times": 1}, "fault": "drop"}


async def _unasked(_: BackfillPlan) -> bool:
    raise AssertionError("approval was asked for")


def after_failures(service_of: StartService, folder: Path, dialect: str = "2026") -> Simulated:
    """Return a service with `Lake` and `Pond`: of ten runs the second and third of Lake failed."""
    world = start(service_of, folder, dialect)
    world.create()
    world.create("Pond")
    world.advance(hours=1)
    world.outcomes({"match": {"name": "Lake", "times": 2}, **FAILED})
    world.advance(hours=9)
    return world


def retried(world: Simulated, name: str = "*", **fields: Any) -> Backfilled:
    wanted = Retries(fields.pop("run", None), fields.pop("first", None), fields.pop("last", None))
    request = BackfillRequest(world.workspace, (name,), retries=wanted, auto_approve=True, **fields)
    screen = Screen(lambda *_: None, _unasked)
    return world.run(lambda runtime: backfill(request, runtime, screen))


def listed(world: Simulated, name: str = "Lake", **fields: Any) -> tuple[Run, ...]:
    request = RunsRequest(world.workspace, name, **{"limit": None, **fields})
    return world.run(lambda runtime: runs(request, runtime)).runs


def going_on(
    service_of: StartService, folder: Path, dialect: str = "2026"
) -> tuple[Simulated, Run]:
    """Return a service whose only run goes on until it is cancelled."""
    world = start(service_of, folder, dialect)
    world.create()
    world.outcomes({"match": {"name": "Lake"}, "status": "Running"})
    world.advance(hours=1)
    (run,) = listed(world)
    return world, run


def failed(world: Simulated) -> list[Run]:
    return [run for run in listed(world) if run.failed]


def open_gaps(world: Simulated) -> int:
    return world.run(lambda runtime: gaps(GapRequest(world.workspace), runtime)).report.gaps


def ends(result: Backfilled) -> list[tuple[str, str, str]]:
    return [
        (item.name, f"{end.planned.end:%d %H:%M}", end.state.value)
        for item in result.ended
        for end in item.ends
    ]


def actions(world: Simulated) -> list[str]:
    """Return the requests for retries and cancellations, with the run of each."""
    return [
        "/".join(request["path"].strip("/").split("/")[-2:])
        for request in world.service.requests()
        if request["path"].endswith(("/retry/", "/cancel/", "/backfills/"))
        if request["method"] == "POST"
    ]


@pytest.mark.parametrize("dialect", WITH_RETRY)
def test_issue_30_a_failed_run_is_retried_once_and_its_gap_is_closed(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path, dialect)
    assert open_gaps(world) == 2
    older, newer = sorted(failed(world), key=lambda run: str(run.end))
    result = retried(world, "Lake", run=older.id, wait=True)
    assert ends(result) == [("Lake", "20 12:00", "completed")]
    assert result.ends[0].id is not None
    assert actions(world) == [f"{older.id}/retry"]
    assert open_gaps(world) == 1
    assert newer.end is not None
    (again, _) = (run for run in listed(world) if run.end == older.end)
    assert again.backfill == result.ends[0].id


@pytest.mark.parametrize("dialect", WITH_RETRY)
def test_issue_30_the_failed_runs_of_every_export_are_retried_in_one_plan(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path, dialect)
    world.outcomes({"match": {"name": "Pond", "times": 1}, **FAILED})
    world.advance(hours=2)
    result = retried(world, wait=True)
    assert sorted(ends(result)) == [
        ("Lake", "20 12:00", "completed"),
        ("Lake", "20 13:00", "completed"),
        ("Pond", "20 21:00", "completed"),
    ]
    assert open_gaps(world) == 0
    # What was repeated is settled: nothing is left to do.
    assert retried(world).plan.backfills == ()
    assert len(actions(world)) == 3


def test_issue_30_an_export_that_fails_gets_one_retry_first(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026")
    world.create()
    world.outcomes({"match": {"name": "Lake"}, **FAILED})
    world.advance(hours=3)
    result = retried(world)
    assert ends(result) == [
        ("Lake", "20 11:00", "failed"),
        ("Lake", "20 12:00", "skipped"),
        ("Lake", "20 13:00", "skipped"),
    ]
    assert not result.complete
    assert len(actions(world)) == 1


@pytest.mark.parametrize("dialect", WITH_RETRY)
@pytest.mark.parametrize("when", ["before", "after"])
def test_issue_30_a_retry_with_a_lost_answer_is_looked_for_and_never_sent_again(
    dialect: str, when: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path, dialect)
    world.service.admin("PUT", "faults", [{**LOST, "when": when}])
    run = failed(world)[0]
    result = retried(world, "Lake", run=run.id)
    states = [end.state.value for end in result.ends]
    assert states == ["unknown" if when == "before" else "started"]
    assert actions(world) == [f"{run.id}/retry"]


@pytest.mark.parametrize("status", [500, 504])
def test_issue_30_a_retry_that_takes_effect_late_is_found(
    status: int, service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path)
    match = {"method": "POST", "path": "*/retry/", "times": 1}
    late = {"match": match, "fault": "late", "seconds": 20, "status": status}
    world.service.admin("PUT", "faults", [late])
    run = failed(world)[0]
    assert ends(retried(world, "Lake", run=run.id, wait=True))[0][2] == "completed"
    assert len(actions(world)) == 1
    assert len([item for item in listed(world) if item.end == run.end]) == 2


def test_issue_30_an_interval_that_is_exported_again_already_is_left_out(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path)
    run = failed(world)[0]
    assert ends(retried(world, "Lake", run=run.id))[0][2] == "started"
    assert ends(retried(world, "Lake", run=run.id))[0][2] == "running"
    assert len(actions(world)) == 1


def test_issue_30_a_run_older_than_a_week_is_retried(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path)
    run = failed(world)[0]
    world.advance(days=10)
    assert retried(world, "Lake").plan.backfills == ()
    result = retried(world, "Lake", run=run.id, wait=True)
    assert ends(result) == [("Lake", "20 13:00", "completed")]


def test_issue_30_an_interval_that_was_exported_before_the_window_is_not_retried(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path)
    run = next(run for run in listed(world) if run.completed)
    world.advance(days=10)
    world.outcomes({"match": {"backfill": True, "times": 1}, **FAILED})
    result = retried(world, "Lake", run=run.id, wait=True)
    assert "completed; the retry exports its interval again" in result.plan.objects[0].notes[0]
    assert not result.complete
    assert retried(world, "Lake").plan.backfills == ()


def test_issue_30_a_billing_limit_is_not_retried(service_of: StartService, tmp_path: Path) -> None:
    world = start(service_of, tmp_path, "2026")
    world.create()
    world.outcomes({"match": {"name": "Lake", "times": 2}, "status": "FailedBilling"})
    world.advance(hours=4)
    plan = retried(world, "Lake").plan
    assert plan.backfills == ()
    assert plan.objects[0].notes == ("2 runs left out: over a billing limit, or without a start",)


def test_issue_30_a_run_that_goes_on_is_not_retried(
    service_of: StartService, tmp_path: Path
) -> None:
    world, run = going_on(service_of, tmp_path)
    with pytest.raises(BadUsage, match="has not ended: Running"):
        retried(world, "Lake", run=run.id)
    assert actions(world) == []


def test_issue_30_a_retry_is_in_the_audit_log(service_of: StartService, tmp_path: Path) -> None:
    world, log = after_failures(service_of, tmp_path), tmp_path / "audit.jsonl"
    run = failed(world)[0]
    retried(world, "Lake", run=run.id, outputs=Outputs(log))
    (logged,) = read_log(log.read_bytes()) or ()
    (sent,) = logged.requests
    assert sent.path.endswith(f"/runs/{run.id}/retry/")
    assert (sent.method, sent.statuses) == ("POST", (201,))


@pytest.mark.parametrize("dialect", WITH_RETRY)
def test_issue_30_a_run_is_cancelled(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world, run = going_on(service_of, tmp_path, dialect)
    cancel = partial(cancel_run, "Lake", run.id, world.workspace)
    assert str(world.run(cancel)).startswith("batch_export.id:")
    assert [item.status for item in listed(world)] == ["Cancelled"]
    with pytest.raises(Invalid, match="Cannot cancel a run that is in 'Cancelled' status"):
        world.run(cancel)
    assert retried(world, "Lake").plan.backfills == ()


def test_issue_30_a_cancellation_whose_answer_was_lost_took_effect(
    service_of: StartService, tmp_path: Path
) -> None:
    world, run = going_on(service_of, tmp_path)
    lost = {"match": {"path": "*/cancel/", "times": 1}, "fault": "error", "when": "after"}
    world.service.admin("PUT", "faults", [lost])
    world.run(partial(cancel_run, "Lake", run.id, world.workspace))
    assert actions(world) == [f"{run.id}/cancel"] * 2
    with pytest.raises(NotFound, match="has no run"):
        world.run(partial(cancel_run, "Lake", run.id[::-1], world.workspace))


def test_issue_30_the_first_interface_has_no_retries(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path, "interface")
    run = failed(world)[0]
    for call in (
        lambda: retried(world),
        lambda: retried(world, "Lake", run=run.id),
        lambda: world.run(partial(cancel_run, "Lake", run.id, world.workspace)),
    ):
        with pytest.raises(NotOffered, match="run: a server of dialect interface does not offer"):
            call()
    assert actions(world) == []


def command(world: Simulated, *words: str) -> Ran:
    return reconciler("runs", *words, "-C", world.workspace.folder, environ=world.service.environ())


def test_issue_30_the_command_shows_asks_and_reports(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_failures(service_of, tmp_path)
    run = failed(world)[0]
    ran = command(world, "*", "--failed", "--retry", "--dry-run")
    assert ran.code == 0, ran.err
    assert f"1 run  retry of {run.id}\n" in ran.out
    assert "Plan: 2 backfills" in ran.out
    assert command(world, "Lake", run.id, "--retry").code == 64
    assert actions(world) == []
    ran = command(world, "Lake", run.id, "--retry", "--auto-approve", "--format", "json")
    assert ran.code == 0, ran.err
    (item,) = json.loads(ran.out)["objects"]
    assert [part["run"] for part in item["backfills"]] == [run.id]
    assert [end["state"] for end in item["ends"]] == ["started"]


def test_issue_30_the_command_cancels_and_names_the_retry(
    service_of: StartService, tmp_path: Path
) -> None:
    world, run = going_on(service_of, tmp_path)
    ran = command(world, "Lake", run.id, "--cancel")
    assert (ran.code, ran.out) == (0, f"cancelled run {run.id}; its interval is not exported\n")
    assert f"{run.id} --retry" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Lake", "--retry"), "--retry needs either a RUN or --failed"),
        (("Lake", "1", "--retry", "--failed"), "--retry needs either a RUN or --failed"),
        (("Lake", "--failed"), "--failed needs --retry"),
        (("Lake", "--dry-run"), "--dry-run needs --retry"),
        (("Lake", "--cancel"), "--cancel needs a RUN"),
        (("Lake", "1", "--cancel", "--wait"), "--wait needs --retry"),
        (("Lake", "1", "--cancel", "--retry"), "--retry and --cancel exclude each other"),
        (("Lake", "1", "--retry", "--follow"), "--follow shows runs"),
        (("Lake", "1", "--retry", "--format", "html"), "--retry does not support --format html"),
    ],
)
def test_issue_30_wrong_combinations_are_usage_errors(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    ran = reconciler("runs", *words, "-C", tmp_path)
    assert (ran.code, message in ran.err) == (64, True), ran.err
