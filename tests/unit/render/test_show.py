"""Runs of an audit log as text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.commands.screen import exit_code_of_run
from reconciler.commands.show import audit_of
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.decoding import Audit, read_log
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Planned,
    Report,
    RunInfo,
    Sending,
    Sent,
)
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan, PlanSource
from reconciler.model.values import Address
from reconciler.render.options import RenderOptions, Style
from tests.support.records import RUN, log_of
from tests.support.reports import written
from tests.unit.render.test_diagnostics import HOSTILE, breaking

LAKE = Change(Address("batch_export", "lake"), Action.CREATE, "Lake")
POND = Change(Address("batch_export", "pond"), Action.UPDATE, "Pond", live_id="e2")
PLAN = Plan(
    PlanSource("production", "org", "https://eu.example.com", "1.0", head="f" * 40), (LAKE, POND)
)
POST = Sending("POST", "/api/projects/1/batch_exports/", change_id=LAKE.id)
KILLED = (Planned(PLAN), POST)
COMPLETE = (
    *(Planned(PLAN), POST, Sent("POST", POST.path, 201, change_id=LAKE.id), Done(LAKE, "e1")),
    *(Done(POND, "e2"), Ended(Report(done=(Done(LAKE, "e1"), Done(POND, "e2"))), verified=True)),
)
OTHER = RunInfo("run-2", "1.0", "laptop", "ada")


def file_of(folder: Path, *runs: tuple[RunInfo, tuple[Event, ...]]) -> Path:
    path = folder / "audit.jsonl"
    path.write_bytes(b"".join(log_of(*events, run=run) for run, events in runs))
    return path


def audit(file: Path, run: str | None = None) -> Audit:
    return audit_of(read_log(file.read_bytes()) or (), run)


def test_a_complete_run_is_shown(tmp_path: Path) -> None:
    result = audit(file_of(tmp_path, (RUN, COMPLETE)))
    lines = written("audit", "text", result).splitlines()
    assert lines[:6] == [
        "Run          run-1, reconciler 1.0",
        "Started by   ada (root on ci-7)",
        "Job          https://ci.example.com/jobs/1",
        "Time         2026-06-01T12:00:00+00:00 to 2026-06-01T12:00:00+00:00",
        "Environment  production · https://eu.example.com · organization org",
        f"Commit       {'f' * 40}",
    ]
    assert lines[7:] == [
        "End          exit code 0, verified",
        "",
        '+ done  create batch_export.lake "Lake" (id e1)',
        '~ done  update batch_export.pond "Pond" (id e2)',
    ]
    assert exit_code_of_run(result.shown) == ExitCode.FINE


def test_f8_a_killed_run_shows_what_is_unknown(tmp_path: Path) -> None:
    result = audit(file_of(tmp_path, (RUN, KILLED)))
    text = written("audit", "text", result)
    assert "End          no end is recorded: it was killed, or it is still running" in text
    assert '+ unknown   create batch_export.lake "Lake"\n' in text
    assert '~ not sent  update batch_export.pond "Pond"\n' in text
    assert "The outcome of 1 change is unknown." in text
    assert exit_code_of_run(result.shown) == ExitCode.PARTLY_APPLIED
    ends = (Planned(PLAN), Done(LAKE, "e1"), Failed(POND, "400: no"))
    text = written("audit", "text", audit(file_of(tmp_path, (RUN, ends))))
    assert '+ done    create batch_export.lake "Lake" (id e1)\n' in text
    assert '~ failed  update batch_export.pond "Pond": 400: no\n' in text


def test_several_runs_are_a_line_each_and_the_last_is_shown(tmp_path: Path) -> None:
    file = file_of(tmp_path, (RUN, KILLED), (OTHER, COMPLETE))
    first, second, blank, head, *_ = written("audit", "text", audit(file)).splitlines()
    time, end = "2026-06-01T12:00:00+00:00", "it was killed, or it is still running"
    counts = "1 unknown, 1 not sent"
    assert first == f"{time}  run-1  ada (root on ci-7): {counts}; no end is recorded: {end}"
    assert second == f"{time}  run-2  ada on laptop: 2 done; exit code 0, verified"
    assert (blank, head) == ("", "Run          run-2, reconciler 1.0")
    assert written("audit", "text", audit(file, "run-1")).startswith("Run          run-1,")


def test_a_run_is_selected_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    file = file_of(tmp_path, (RUN, KILLED), (OTHER, COMPLETE))
    with pytest.raises(BadUsage, match="several runs begin with 'run'") as raised:
        audit(file, "run")
    assert raised.value.hint == "runs: run-1, run-2"
    with pytest.raises(BadUsage, match="no run begins with 'x'"):
        audit(file, "x")


def test_json_has_every_run(tmp_path: Path) -> None:
    value = json.loads(
        written("audit", "json", audit(file_of(tmp_path, (RUN, KILLED), (OTHER, COMPLETE))))
    )
    killed, complete = value["runs"]
    assert (killed["started_by"]["id"], killed["exit_code"]) == ("run-1", None)
    assert [change["ending"] for change in killed["changes"]] == ["unknown", "not sent"]
    assert (complete["exit_code"], complete["verified"]) == (0, True)


def test_text_of_a_log_can_not_forge_lines(tmp_path: Path) -> None:
    change = Change(Address("batch_export", "lake"), Action.CREATE, HOSTILE)
    plan = Plan(PlanSource(HOSTILE, HOSTILE, HOSTILE, HOSTILE, head=HOSTILE), (change,))
    hostile = RunInfo(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    sending = Sending("POST", HOSTILE, change_id=change.id)
    events = (Planned(plan), sending, Failed(change, HOSTILE, unknown=True))
    wide = RenderOptions(Style(width=2_000))
    text = written("audit", "text", audit(file_of(tmp_path, (hostile, events))), wide)
    assert not breaking(text.replace("\n", ""))
    killed = written("audit", "text", audit(file_of(tmp_path, (RUN, KILLED))))
    assert len(text.splitlines()) == len(killed.splitlines()) - 1
