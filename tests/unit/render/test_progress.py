"""What is told while a plan is carried out: nothing that a server says forges a line."""

from __future__ import annotations

from reconciler.errors import AmbiguousIdentity, ReconcilerError
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Interrupting,
    Planned,
    Sent,
    Skipped,
    Started,
)
from reconciler.model.plan import Plan, PlanSource
from reconciler.render.progress import Progress, error_as_text, event_as_text
from reconciler.render.style import Style
from tests.unit.render.test_diagnostics import HOSTILE, breaking

CHANGE = Change(Address("batch_export", "lake"), Action.UPDATE, "Lake")


def test_each_way_to_end_is_a_line() -> None:
    told = [
        event_as_text(each)
        for each in (
            Done(CHANGE, "7", ("name was altered",)),
            Failed(CHANGE, "the service said no", "ask again"),
            Skipped(CHANGE, "create of project.web failed"),
            Started(CHANGE),
        )
    ]
    assert told == [
        '~ updated batch_export.lake "Lake" (id 7)\n    ! name was altered',
        '✗ update of batch_export.lake "Lake" failed: the service said no\n    ask again',
        '○ update of batch_export.lake "Lake" skipped: create of project.web failed',
        None,
    ]
    assert event_as_text(Interrupting()) is not None


def test_what_a_server_says_is_escaped_and_stays_below_its_line() -> None:
    change = Change(CHANGE.address, Action.UPDATE, HOSTILE)
    events: list[Event] = [
        Done(change, HOSTILE, (HOSTILE,)),
        Failed(change, HOSTILE, HOSTILE),
        Skipped(change, HOSTILE),
    ]
    for each in events:
        told = event_as_text(each) or ""
        assert not breaking(told)
        assert all(line.startswith("    ") for line in told.splitlines()[1:])


def test_errors_are_escaped_and_each_line_is_labelled() -> None:
    told = error_as_text(ReconcilerError(f"{HOSTILE}\n  detail", hint=f"way\n{HOSTILE}"))
    assert not breaking(told)
    lines = told.splitlines()
    assert all(line.startswith(("error: ", "  ")) for line in lines)
    assert lines[1] == "error: error: forged"
    assert lines[2:4] == ["  detail", "  way"]


def test_several_problems_are_several_errors() -> None:
    problems = AmbiguousIdentity("a: 2 are named 'A'\n  id: 1\n  id: 2\nb: none has the id 3")
    assert error_as_text(problems) == (
        "error: a: 2 are named 'A'\n  id: 1\n  id: 2\nerror: b: none has the id 3\n"
    )
    assert error_as_text(problems, Style(colour=True)).count("\x1b[1;31merror\x1b[0m: ") == 2


OTHER = Change(Address("batch_export", "pond"), Action.CREATE, "Pond")
PLAN = Plan(PlanSource("a", "o", "https://x.example", "1", "c", "l"), (CHANGE, OTHER))
EVENTS: list[Event] = [
    Planned(PLAN),
    Started(CHANGE),
    Sent("PATCH", "/x", 200, CHANGE),
    Started(OTHER),
    Done(CHANGE, "7"),
    Failed(OTHER, "no"),
]


def test_in_a_pipe_only_ends_are_told() -> None:
    told: list[str] = []
    listener = Progress(told.append)
    for each in EVENTS:
        listener(each)
    assert told == [
        '~ updated batch_export.lake "Lake" (id 7)\n',
        '✗ create of batch_export.pond "Pond" failed: no\n',
    ]


def test_on_a_terminal_the_last_line_tells_what_is_under_way() -> None:
    told: list[str] = []
    listener = Progress(told.append, live=True, width=60)
    for each in EVENTS:
        listener(each)
    assert [each.replace("\r\x1b[K", "<") for each in told] == [
        "<",
        "<0 of 2 ended; updating batch_export.lake",
        "<0 of 2 ended; updating batch_export.lake, creating batch_…",
        '<~ updated batch_export.lake "Lake" (id 7)\n1 of 2 ended; creating batch_export.pond',
        '<✗ create of batch_export.pond "Pond" failed: no\n',
    ]
