"""An audit log is read as it was written, or the error says which line is wrong."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from reconciler.model.decoding import Ending, InvalidPlanFile, LoggedRun, read_log
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Interrupting,
    Planned,
    Report,
    Sending,
    Sent,
    Skipped,
    Started,
    Verifying,
)
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan, PlanSource, encode
from reconciler.model.values import Address
from tests.support.records import RUN, TIME, log_of

CREATE = Change(Address("batch_export", "lake"), Action.CREATE, "Lake")
UPDATE = Change(Address("batch_export", "pond"), Action.UPDATE, "Pond", live_id="e2")
SOURCE = PlanSource("staging", "org", "https://eu.example.com", "1.0")
PLAN = Plan(SOURCE, (CREATE, UPDATE), created_at="2026-06-01T12:00:00Z")
OTHER = replace(RUN, id="run-2")
PATH = "/api/projects/1/batch_exports/"
SENDING = Sending("POST", PATH, change_id=CREATE.id)


def sent(status: int | None, **parts: Any) -> Sent:
    return Sent("POST", PATH, status, change_id=CREATE.id, **parts)


def runs_of(data: bytes) -> tuple[LoggedRun, ...]:
    runs = read_log(data)
    assert runs is not None
    return runs


def endings(data: bytes) -> list[Ending]:
    """Return how the create ended in each run."""
    return [run.changes[0].ending for run in runs_of(data)]


def test_a_run_is_read_with_its_plan_and_who_started_it() -> None:
    report = Report(done=(Done(CREATE, "e1"),), failed=(Failed(UPDATE, "no"),))
    events = (Planned(PLAN), Done(CREATE, "e1", ("altered",)), Failed(UPDATE, "no"), Ended(report))
    (run,) = runs_of(log_of(*events))
    assert run.plan == PLAN
    assert (run.started_by, run.started_at, run.last_event_at) == (RUN, TIME, TIME)
    assert [logged.ending for logged in run.changes] == [Ending.DONE, Ending.FAILED]
    assert (run.exit_code, run.verified) == (3, None)


def test_runs_that_append_to_one_file_at_once_are_separated() -> None:
    first = log_of(Planned(PLAN), Done(CREATE, "e1"), Ended(Report())).splitlines(keepends=True)
    second = log_of(Planned(PLAN), Skipped(CREATE, "x"), run=OTHER).splitlines(keepends=True)
    mixed = runs_of(b"".join([first[0], second[0], first[1], second[1], first[2]]))
    assert [(run.started_by.id, run.changes[0].ending, run.exit_code) for run in mixed] == [
        ("run-1", Ending.DONE, 0),
        ("run-2", Ending.SKIPPED, None),
    ]


@pytest.mark.parametrize(
    ("events", "ending"),
    [
        ([], Ending.NOT_SENT),
        ([Sending("GET", PATH, change_id=CREATE.id)], Ending.NOT_SENT),
        ([SENDING, sent(201)], Ending.UNKNOWN),
        ([SENDING, sent(201), Done(CREATE, "e1")], Ending.DONE),
        ([SENDING, sent(504), Done(CREATE, "e1", adopted=True)], Ending.ADOPTED),
        ([SENDING, sent(504), Failed(CREATE, "?", unknown=True)], Ending.UNKNOWN),
        ([SENDING, sent(201), Failed(CREATE, "no", live_id="e1")], Ending.FAILED),
        ([Failed(CREATE, "modified", stale=True)], Ending.STALE),
        ([Skipped(CREATE, "the run was interrupted")], Ending.SKIPPED),
    ],
)
def test_f8_the_log_says_how_a_change_ended_or_that_it_is_unknown(
    events: list[Event], ending: Ending
) -> None:
    assert endings(log_of(Planned(PLAN), Started(CREATE), *events)) == [ending]


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", b"[]", b"- yaml", encode(PLAN), b"null\n{}"])
def test_anything_else_is_no_log(data: bytes) -> None:
    assert read_log(data) is None


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_cut_off_is_ignored_at_the_end_and_before_a_run(cut: int) -> None:
    data = log_of(Planned(PLAN), Interrupting(), Done(CREATE, "e1"))[:-1][:-cut]
    assert endings(data) == [Ending.NOT_SENT]
    assert endings(data + b"\n" + log_of(Planned(PLAN), run=OTHER)) == [Ending.NOT_SENT] * 2


@pytest.mark.parametrize("broken", [1, 3])
def test_a_plan_that_was_cut_off_hides_no_later_run(broken: int) -> None:
    cut = (log_of(Planned(PLAN))[:200] + b"\n") * broken
    data = cut + log_of(Planned(PLAN), Done(CREATE, "e1")) + cut + log_of(Planned(PLAN), run=OTHER)
    assert endings(data) == [Ending.DONE, Ending.NOT_SENT]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"garbage", "audit.jsonl:2: not a line of an audit log"),
        (b"{}", "audit.jsonl:2: not a line of an audit log"),
        (b'{"event": "done"}', "audit.jsonl:2: invalid event: object missing required field"),
        (b'{"event": "planned", "format_version": 9}', "audit.jsonl:2: unsupported format 9"),
        (log_of(Verifying(), run=OTHER)[:-1], "audit.jsonl:2: this audit log contains no plan of"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: bytes, problem: str) -> None:
    data = log_of(Planned(PLAN)) + line + b"\n" + log_of(Interrupting())
    with pytest.raises(InvalidPlanFile) as raised:
        read_log(data, name="audit.jsonl")
    assert raised.value.message.startswith(problem)


def test_an_edited_plan_in_a_log_is_refused() -> None:
    planned = orjson.loads(log_of(Planned(PLAN)))
    planned["plan"]["changes"][0]["name"] = "Other"
    with pytest.raises(InvalidPlanFile, match=r"audit\.jsonl:1: plan was edited"):
        read_log(orjson.dumps(planned), name="audit.jsonl")
