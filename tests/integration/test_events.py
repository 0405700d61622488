"""Events and the audit log, with processes whose streams fail, and that get signals."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import declared
from tests.support.cli import Ran, reconciler, write
from tests.support.devices import NEEDS_FULL_DISK
from tests.support.emulator import RunningEmulator
from tests.support.limits import time_limit, until

COUNT = 12
PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
ALL = sorted(f"E{number}" for number in range(COUNT))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    exports = {name.lower(): {"name": name} for name in ALL}
    return write(tmp_path / "w", declared.workspace("", **exports))


def apply(workspace: Path, emulator: RunningEmulator, *more: object) -> Ran:
    arguments = ("apply", "-C", workspace, "--auto-approve", *map(str, more))
    return reconciler(*arguments, environ=emulator.environ())


@contextmanager
def started(
    workspace: Path,
    emulator: RunningEmulator,
    *more: object,
    command: str = "apply",
    **streams: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    approval = ("--auto-approve",) if command == "apply" else ()
    words = ("-m", "reconciler", command, "-C", workspace, *approval, *more)
    environ = {**os.environ, **emulator.environ()}
    process = subprocess.Popen([sys.executable, *map(str, words)], env=environ, **streams)
    with process, time_limit(process):
        yield process


def completed(*arguments: Any, **streams: Any) -> tuple[int, str, str]:
    """Return the exit code, the output and the errors of a process."""
    with started(*arguments, **streams) as process:
        out, err = (str(text or b"", "utf-8") for text in process.communicate())
    return process.returncode, out, err


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_f8_every_request_and_change_is_in_the_log(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    ran = apply(workspace, emulator, "--log-file", log)
    assert ran.code == 0, ran.err
    lines = lines_of(log.read_text())
    assert [line["sequence"] for line in lines] == list(range(1, len(lines) + 1))
    assert len({line["run"] for line in lines}) == 1
    assert [lines[0]["event"], lines[-1]["event"]] == ["planned", "ended"]
    assert (lines[-1]["exit_code"], lines[-1]["verified"]) == (0, True)
    kinds = Counter(line["event"] for line in lines)
    assert (kinds["started"], kinds["done"], kinds["verifying"]) == (COUNT + 1, COUNT + 1, 1)
    sent, sending = (
        Counter((line["method"], line["path"]) for line in lines if line["event"] == event)
        for event in ("sent", "sending")
    )
    assert sent == sending
    received = Counter((call["method"], call["path"]) for call in emulator.requests())
    while_planning = received - sent
    assert received == sent + while_planning
    assert {method for method, _ in while_planning} == {"GET"}
    writes = [line for line in lines if line["event"] == "sent" and line["method"] != "GET"]
    assert [line["status"] for line in writes] == [201] * (COUNT + 1)
    assert {line["change"] for line in writes} == {
        "project.web:create",
        *(f"batch_export.e{number}:create" for number in range(COUNT)),
    }


@pytest.mark.parametrize("when", ["before", "after"])
def test_f8_the_log_of_a_killed_run_has_what_is_unknown(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path, when: str
) -> None:
    log = tmp_path / "audit.jsonl"
    match = {"method": "POST", "body": {"name": "E3"}, "times": 1}
    emulator.admin("PUT", "faults", [{"match": match, "fault": "hang", "when": when}])
    silent = dict.fromkeys(PIPES, subprocess.DEVNULL)
    with started(workspace, emulator, "--log-file", log, **silent) as process:
        until(lambda: len(unanswered(log)) == 1 and ended(log) == COUNT, process)
        process.kill()
    created = ALL if when == "after" else [name for name in ALL if name != "E3"]
    assert sorted(emulator.exports()) == created
    audited = reconciler("show", log)
    assert audited.code == 3
    assert '+ unknown create batch_export.e3 "E3"' in " ".join(audited.out.split())


def complete_lines(log: Path) -> list[dict[str, Any]]:
    text = log.read_text() if log.exists() else ""
    return lines_of(text[: text.rfind("\n") + 1])


def unanswered(log: Path) -> Counter[str]:
    """Return the changes whose POST has no answer."""
    posts = [line for line in complete_lines(log) if line.get("method") == "POST"]
    sending, sent = (
        Counter(line["change"] for line in posts if line["event"] == event)
        for event in ("sending", "sent")
    )
    return sending - sent


def ended(log: Path) -> int:
    return sum(line["event"] == "done" for line in complete_lines(log))


def test_f10_the_report_is_printed_if_the_verification_can_not_read(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    """I10: the changes are made, so the exit code is 3."""
    log = tmp_path / "audit.jsonl"
    lists = {"method": "GET", "path": "/api/organizations/*/batch_exports/", "from": 2}
    emulator.admin("PUT", "faults", [{"match": lists, "fault": "error", "status": 400}])
    ran = apply(workspace, emulator, "--log-file", log)
    assert ran.code == 3
    assert "Applied: 13 created" in ran.out
    assert "applied, but not verified" in ran.err
    last = complete_lines(log)[-1]
    assert (last["event"], last["done"], last["verified"]) == ("ended", COUNT + 1, False)


# F9: streams and files that fail


@NEEDS_FULL_DISK
def test_f9_a_log_that_can_not_be_written_refuses_the_run(
    workspace: Path, emulator: RunningEmulator
) -> None:
    ran = apply(workspace, emulator, "--log-file", "/dev/full")
    assert ran.code == 1
    assert "/dev/full can't be written: No space left on device; nothing was sent" in ran.err
    assert emulator.writes() == []


def test_f9_a_log_that_gets_full_does_not_end_the_run(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    code, out, err = completed(*(workspace, emulator, "--log-file", log), **PIPES, preexec_fn=limit)
    assert code == 0, err
    assert "Applied: 13 created" in out
    assert "warning: the audit log" in err
    assert "is incomplete: File too large" in err
    assert sorted(emulator.exports()) == ALL


STREAMS = ["gone", pytest.param("full", marks=NEEDS_FULL_DISK), "closed"]
REASONS = {
    "gone": "Broken pipe",
    "full": "No space left",
    "closed": "Bad file descriptor; nothing was sent",
}


@contextmanager
def broken(name: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield both streams of a process, one without a reader, with a full disk, or closed."""
    if kind == "closed":
        number = 1 if name == "stdout" else 2
        yield {**PIPES, name: None, "preexec_fn": lambda: os.close(number)}
        return
    if kind == "gone":
        reader, writer = os.pipe()
        os.close(reader)
    with Path("/dev/full").open("wb") if kind == "full" else os.fdopen(writer, "wb") as stream:
        yield {**PIPES, name: stream}


@pytest.mark.parametrize("kind", STREAMS)
def test_f9_a_run_does_not_need_stderr(
    workspace: Path, emulator: RunningEmulator, kind: str
) -> None:
    with broken("stderr", kind) as streams:
        code, out, _ = completed(workspace, emulator, **streams)
    assert code == 0
    assert "Applied: 13 created" in out
    assert sorted(emulator.exports()) == ALL


@pytest.mark.parametrize("kind", STREAMS)
def test_f9_a_plan_that_can_not_be_shown_is_not_applied(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "audit.jsonl"
    with broken("stdout", kind) as streams:
        code, _, err = completed(workspace, emulator, "--log-file", log, **streams)
    assert code == 1
    assert f"the standard output can't be written: {REASONS[kind]}" in err
    assert not log.exists() or b"Environment" not in log.read_bytes()  # It is no other file.
    assert emulator.writes() == []


def test_f9_a_reader_that_has_gone_changes_neither_files_nor_exit_code(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    options = ("--detailed-exitcode", "--out", file)
    with broken("stdout", "gone") as streams:
        code, _, _ = completed(workspace, emulator, *options, command="plan", **streams)
    assert code == 2
    assert file.exists()


# Signals; tests/reliability has them in every state of an apply.


def test_an_interrupted_apply_is_reported_and_converges_when_repeated(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    # The run can't end before the signal arrives.
    throttled = {"match": {"method": "POST", "from": 6}, "fault": "throttle", "retry_after": 800}
    emulator.admin("PUT", "faults", [throttled])
    with started(workspace, emulator, "--log-file", log, **PIPES) as process:
        until(lambda: ended(log) >= 1, process)
        process.send_signal(signal.SIGINT)
        out, err = (part.decode() for part in process.communicate())
    assert process.returncode == 130, err
    assert "Stopping: waiting for running changes" in err
    assert "Interrupted: " in out
    assert "skipped: the run was interrupted" in err
    emulator.admin("PUT", "faults", [])
    again = apply(workspace, emulator)
    assert again.code == 0, again.err
    assert sorted(emulator.exports()) == ALL


def test_ctrl_c_while_the_program_is_imported_prints_no_traceback(tmp_path: Path) -> None:
    write(tmp_path, {"click.py": "import os, time; os.write(2, b'importing'); time.sleep(60)"})
    words = [sys.executable, "-c", "from reconciler.commands import main; main()"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(words, env=environ, **PIPES) as process, time_limit(process):
        assert process.stderr is not None
        assert process.stderr.read(9) == b"importing"
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
    assert process.returncode == -signal.SIGINT
