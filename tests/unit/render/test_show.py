"""Runs of an audit log as text and JSON."""

from __future__ import annotations

import json

import pytest

from reconciler.commands.show import audit_of
from reconciler.errors import BadUsage
from reconciler.exit_codes import ExitCode
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
ENDED = Ended(Report(done=(Done(LAKE, "e1"), Done(POND, "e2"))), verified=True)
COMPLETE = (Planned(PLAN), POST, Done(LAKE, "e1"), Done(POND, "e2"), ENDED)
OTHER = RunInfo("run-2", "1.0", "laptop", "ada")
SEVERAL = ((RUN, KILLED), (OTHER, COMPLETE))


def audit(*runs: tuple[RunInfo, tuple[Event, ...]], run: str | None = None) -> Audit:
    log = b"".join(log_of(*events, run=info) for info, events in runs)
    return audit_of(read_log(log) or (), run)


def text_of(*runs: tuple[RunInfo, tuple[Event, ...]], run: str | None = None) -> str:
    return written("audit", "text", audit(*runs, run=run), RenderOptions(Style(width=2_000)))


def test_a_complete_run_is_shown() -> None:
    lines = text_of((RUN, COMPLETE)).splitlines()
    assert lines[1] == "Started by   ada (root on ci-7)"
    assert lines[3] == "Time         2026-06-01T12:00:00Z to 2026-06-01T12:00:00Z"
    assert lines[7] == "End          exit code 0, verified"
    assert lines[9] == '+ done  create batch_export.lake "Lake" (id e1)'
    assert audit((RUN, COMPLETE)).shown.code == ExitCode.FINE


def test_f8_a_killed_run_shows_what_is_unknown() -> None:
    text = text_of((RUN, KILLED))
    assert "End          no end is recorded: it was killed, or it is still running" in text
    assert '+ unknown   create batch_export.lake "Lake"\n' in text
    assert '~ not sent  update batch_export.pond "Pond"\n' in text
    assert "The outcome of 1 change is unknown." in text
    assert audit((RUN, KILLED)).shown.code == ExitCode.PARTLY_APPLIED
    text = text_of((RUN, (Planned(PLAN), Done(LAKE, "e1"), Failed(POND, "400: no"))))
    assert '+ done    create batch_export.lake "Lake" (id e1)\n' in text
    assert '~ failed  update batch_export.pond "Pond": 400: no\n' in text


def test_several_runs_are_a_line_each_and_the_last_is_shown() -> None:
    first, second, blank, head, *_ = text_of(*SEVERAL).splitlines()
    time, end = "2026-06-01T12:00:00Z", "it was killed, or it is still running"
    counts = "1 unknown, 1 not sent"
    assert first == f"{time}  run-1  ada (root on ci-7): {counts}; no end is recorded: {end}"
    assert second == f"{time}  run-2  ada on laptop: 2 done; exit code 0, verified"
    assert (blank, head) == ("", "Run          run-2, reconciler 1.0")
    assert text_of(*SEVERAL, run="run-1").startswith("Run          run-1,")
    killed, complete = json.loads(written("audit", "json", audit(*SEVERAL)))["runs"]
    assert [change["ending"] for change in killed["changes"]] == ["unknown", "not sent"]
    assert (killed["exit_code"], complete["exit_code"], complete["verified"]) == (None, 0, True)


def test_a_run_is_selected_by_the_beginning_of_its_id() -> None:
    for run, match in (("run", "several runs begin with 'run'"), ("x", "no run begins with 'x'")):
        with pytest.raises(BadUsage, match=match):
            audit(*SEVERAL, run=run)


def test_text_of_a_log_can_not_forge_lines() -> None:
    change = Change(Address("batch_export", "lake"), Action.CREATE, HOSTILE)
    plan = Plan(PlanSource(HOSTILE, HOSTILE, HOSTILE, HOSTILE, head=HOSTILE), (change,))
    hostile = RunInfo(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    sending = Sending("POST", HOSTILE, change_id=change.id)
    events = (Planned(plan), sending, Failed(change, HOSTILE, unknown=True))
    text = text_of((hostile, events))
    assert not breaking(text.replace("\n", ""))
    assert len(text.splitlines()) == len(text_of((RUN, KILLED)).splitlines()) - 1
