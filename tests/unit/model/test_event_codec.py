"""An audit log is read as it was written, or the error says which line is wrong."""

from __future__ import annotations

import orjson
import pytest

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.codec.event import DoneLine, InterruptingLine, SentLine, encode_line, last_run
from reconciler.model.codec.plan import InvalidPlanFile, encode
from reconciler.model.event import Done, Event, Failed, Interrupting, Planned, Sent, Skipped
from reconciler.model.plan import Plan, PlanSource

CHANGE = Change(Address("batch_export", "lake"), Action.CREATE, "Lake")
SOURCE = PlanSource("staging", "org", "https://eu.example.com", "1.0", "c" * 64)
PLAN = Plan(SOURCE, (CHANGE,), created_at="2026-06-01T12:00:00Z")
OTHER = Plan(SOURCE, (), created_at="2026-06-01T12:00:00Z")


def log(*events: Event) -> bytes:
    return b"".join(encode_line(event, time="2026-06-01T12:00:00+00:00") for event in events)


def test_the_last_run_of_a_log_is_read() -> None:
    data = log(
        *(Planned(OTHER), Interrupting()),
        *(Planned(PLAN), Sent("POST", "/api/", 201), Done(CHANGE, "e1", ("altered",))),
        *(Failed(CHANGE, "no", "hint", ambiguous=True), Skipped(CHANGE, "interrupted")),
    )
    run = last_run(data, name="audit.jsonl")
    assert run is not None
    plan, lines = run
    assert plan == PLAN
    sent, done, failed, skipped = lines
    assert isinstance(sent, SentLine)
    assert (sent.method, sent.path, sent.status) == ("POST", "/api/", 201)
    assert isinstance(done, DoneLine)
    assert (done.change_id, done.id, done.notices) == (CHANGE.id, "e1", ("altered",))
    assert [type(line).__name__ for line in (failed, skipped)] == ["FailedLine", "SkippedLine"]


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", b"[]", b"- yaml", encode(PLAN), b"null\n{}"])
def test_anything_else_is_no_log(data: bytes) -> None:
    assert last_run(data) is None


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_last_line_that_was_cut_off_is_ignored(cut: int) -> None:
    data = log(Planned(PLAN), Interrupting(), Done(CHANGE, "e1"))
    run = last_run(data[:-1][:-cut])
    assert run is not None
    assert [type(line) for line in run[1]] == [InterruptingLine]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"garbage", "audit.jsonl:2: not a line of an audit log"),
        (b"{}", "audit.jsonl:2: not a line of an audit log"),
        (b'{"event": "unknown"}', "audit.jsonl:2: invalid event: event: invalid value 'unknown'"),
        (b'{"event": 1}', "audit.jsonl:2: invalid event: event: expected `str`"),
        (b'{"event": "done"}', "audit.jsonl:2: invalid event: object missing required field"),
        (b'{"event": "planned", "format_version": 9}', "audit.jsonl:2: unsupported format 9"),
        (b'{"event": "planned", "format_version": 1}', "audit.jsonl:2: not a plan file"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: bytes, problem: str) -> None:
    data = log(Planned(PLAN)) + line + b"\n" + log(Interrupting())
    with pytest.raises(InvalidPlanFile) as raised:
        last_run(data, name="audit.jsonl")
    assert raised.value.message.startswith(problem)


def test_a_log_without_a_plan_is_reported() -> None:
    with pytest.raises(InvalidPlanFile, match=r"audit\.jsonl: this audit log contains no plan"):
        last_run(log(Interrupting()), name="audit.jsonl")


def test_an_edited_plan_in_a_log_is_refused() -> None:
    planned = orjson.loads(log(Planned(PLAN)))
    planned["plan"]["changes"][0]["name"] = "Other"
    with pytest.raises(InvalidPlanFile, match=r"audit\.jsonl:1: plan was edited"):
        last_run(orjson.dumps(planned), name="audit.jsonl")
