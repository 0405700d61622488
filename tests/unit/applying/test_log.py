"""The bus masks once, numbers events, and keeps a run going when a listener fails."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.applying.log import AuditLog, Bus, Output
from reconciler.commands.sending import Outputs, recording, run_info
from reconciler.commands.workspace import Runtime
from reconciler.errors import ReconcilerError
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Interrupting,
    Planned,
    Record,
    Report,
    Sending,
    Sent,
    Skipped,
    Started,
    Verifying,
    Waiting,
)
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan
from reconciler.model.values import Address
from tests.support.records import RUN
from tests.support.worlds import NOW, desired_of, live_of, planned, project

PLAN = planned(desired_of(project()), live_of())
SECRET = 'hun"ter\\2'
CREATE = Change(Address("project", "web"), Action.CREATE, f"Web {SECRET}")


def bus_of(*outputs: Output, mask: Callable[[str], str] = str) -> Bus:
    return Bus(outputs, mask=mask, now=lambda: NOW, run=RUN)


def masked(text: str) -> str:
    return text.replace(SECRET, "***")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (ValueError("I/O operation on closed file"), "ValueError"),
    ],
)
def test_f9_a_listener_that_fails_gets_no_more_events_and_the_others_do(
    error: Exception, reason: str
) -> None:
    written: list[Record] = []

    def fail(record: Record) -> None:
        if record.sequence > 2:
            raise error

    bus = bus_of(Output("the log", fail, required=True), Output("progress", written.append))
    for event in (Planned(PLAN), Verifying(), Verifying(), Verifying(), Ended(Report())):
        bus(event)
    assert len(written) == 5
    assert bus.problems == (f"the log is incomplete: {reason}; 3 of 5 events are missing",)


@pytest.mark.parametrize(
    "event",
    [
        Started(CREATE),
        Sending("GET", f"/{SECRET}"),
        Sent("GET", f"/{SECRET}", None, error=f"no route to {SECRET}"),
        Waiting(3, f"because {SECRET}"),
        Done(CREATE, SECRET, (SECRET, f"x {SECRET}")),
        Failed(CREATE, SECRET, SECRET, live_id=SECRET),
        Skipped(CREATE, SECRET),
        Interrupting(),
        Planned(Plan(PLAN.source, (CREATE,))),
        Ended(Report(failed=(Failed(CREATE, SECRET, SECRET),), done=(Done(CREATE, "1"),))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_known_secrets_are_masked_in_every_event(event: Event) -> None:
    seen: list[Event] = []
    bus_of(Output.of("progress", seen.append), mask=masked)(event)
    assert type(seen[0]) is type(event)
    assert repr(SECRET)[1:-1] not in repr(seen[0])
    assert ("***" in repr(seen[0])) == (repr(SECRET)[1:-1] in repr(event))


# The audit log


@pytest.mark.parametrize("before", ["", '{"event": "sta'], ids=["new", "left by a killed run"])
def test_the_log_is_appended_to_line_by_line_and_private(tmp_path: Path, before: str) -> None:
    path = tmp_path / "audit.jsonl"
    if before:
        path.write_text(before)
    for count in (1, 2):
        log = AuditLog(path)
        bus_of(Output("log", log))(Planned(PLAN))
        # A line is complete when the call returns.
        lines = path.read_text().splitlines()
        assert len(lines) == count + bool(before)
        log.close()
    first, second = map(json.loads, lines[-2:])
    assert first == second
    assert list(first)[:5] == ["event", "format_version", "run", "sequence", "time"]
    assert lines[:-2] == [before] * bool(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs and other texts")
def test_security_n8_a_log_that_can_not_be_opened_is_refused(tmp_path: Path) -> None:
    victim, link, twin, fifo = (tmp_path / name for name in ("victim", "link", "twin", "fifo"))
    victim.write_text("text")
    victim.chmod(0o644)
    link.symlink_to(victim)
    os.link(victim, twin)
    os.mkfifo(fifo)
    problems = {
        link: "it is a symbolic link",
        twin: r"it has another name \(hard link\)",
        # Linux and macOS have different texts.
        fifo: os.strerror(errno.ENXIO),
        tmp_path: "Is a directory",
        tmp_path / "none" / "log": "No such file or directory",
    }
    for path, problem in problems.items():
        with pytest.raises(ReconcilerError, match=f"can't be written: {problem}; nothing was sent"):
            AuditLog(path)
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("text", 0o644)


# Who started a run, and where its events go

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


def test_a_run_without_a_user_has_an_id_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert run_info({}).user is None
    assert run_info({}).id != run_info({}).id


GONE = "it was removed or replaced during the run"


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda log: log.unlink(), GONE),
        (lambda log: log.rename(log.with_name("old")), GONE),
        (lambda log: (log.unlink(), log.touch()), GONE),
        (lambda log: shutil.rmtree(log.parent), GONE),
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
