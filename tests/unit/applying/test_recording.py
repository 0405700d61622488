"""Who started a run, and where its events go."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.commands.sending import Outputs, recording, run_info
from reconciler.commands.workspace import Runtime
from reconciler.model.event import Ended, Event, Planned, Report
from tests.support.worlds import NOW, desired_of, live_of, planned, project

PLAN = planned(desired_of(project()), live_of())
GITHUB = {
    "GITHUB_ACTOR": "ada",
    "GITHUB_SERVER_URL": "https://github.example",
    "GITHUB_REPOSITORY": "acme/data",
    "GITHUB_RUN_ID": "42",
}
AZURE = {
    "BUILD_REQUESTEDFOR": "Ada",
    "SYSTEM_COLLECTIONURI": "https://azure.example/acme/",
    "SYSTEM_TEAMPROJECT": "data",
    "BUILD_BUILDID": "42",
}


@pytest.mark.parametrize(
    ("environ", "actor", "job_url"),
    [
        ({}, None, None),
        ({"GITHUB_ACTOR": "", "CI_JOB_URL": ""}, None, None),
        (GITHUB, "ada", "https://github.example/acme/data/actions/runs/42"),
        (
            {"GITLAB_USER_LOGIN": "ada", "CI_JOB_URL": "https://gitlab.example/jobs/42"},
            "ada",
            "https://gitlab.example/jobs/42",
        ),
        (AZURE, "Ada", "https://azure.example/acme/data/_build/results?buildId=42"),
        ({"BUILD_URL": "https://jenkins.example/42/"}, None, "https://jenkins.example/42/"),
    ],
)
def test_a_run_knows_its_ci_job(
    environ: dict[str, str], actor: str | None, job_url: str | None
) -> None:
    info = run_info(environ)
    assert (info.actor, info.job_url) == (actor, job_url)
    assert info.host


def test_an_id_without_a_user_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert run_info({}).user is None


def test_every_run_has_another_id() -> None:
    assert run_info({}).id != run_info({}).id


def test_the_log_and_a_stream_get_the_same_lines(tmp_path: Path) -> None:
    stream, seen = io.BytesIO(), list[Event]()
    outputs = Outputs(tmp_path / "audit.jsonl", stream)
    runtime = Runtime(environ=GITHUB, now=lambda: NOW, listen=seen.append)
    with recording(outputs, runtime, str) as bus:
        bus(Planned(PLAN))
        bus(Ended(Report()))
    texts = {path.read_bytes() for path in tmp_path.iterdir()} | {stream.getvalue()}
    assert len(texts) == 1
    first, last = map(json.loads, texts.pop().splitlines())
    assert first["started_by"]["actor"] == "ada"
    assert (first["run"], last["event"]) == (first["started_by"]["id"], "ended")
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda log: log.unlink(), "it was removed or replaced during the run"),
        (lambda log: log.rename(log.with_name("old")), "it was removed or replaced during the run"),
        (lambda log: (log.unlink(), log.touch()), "it was removed or replaced during the run"),
        (lambda log: shutil.rmtree(log.parent), "it was removed or replaced during the run"),
        (lambda log: os.truncate(log, 10), "it was truncated during the run"),
        (Path.exists, None),
    ],
    ids=["removed", "renamed", "replaced", "folder removed", "truncated", "untouched"],
)
def test_apply_a5_a_log_that_vanished_is_reported(
    tmp_path: Path, act: Callable[[Path], object], reason: str | None
) -> None:
    log = tmp_path / "logs" / "audit.jsonl"
    log.parent.mkdir()
    with recording(Outputs(log), Runtime({}, lambda: NOW), str) as bus:
        bus(Planned(PLAN))
        act(log)
        expected = () if reason is None else (f"the audit log {log} is incomplete: {reason}",)
        assert bus.problems == expected
