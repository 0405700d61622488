"""Test progress, reports and errors."""

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


def test_a_change_that_ended_is_a_line() -> None:
    text = [
        event_as_text(event)
        for event in (
            Done(CHANGE, "7", ("name was altered",)),
            Failed(CHANGE, "the service said no", "ask again"),
            Skipped(CHANGE, "create of project.web failed"),
            Started(CHANGE),
        )
    ]
    assert text == [
        '~ updated batch_export.lake "Lake" (id 7)\n    ! name was altered',
        '✗ update of batch_export.lake "Lake" failed: the service said no\n    hint: ask again',
        '○ update of batch_export.lake "Lake" skipped: create of project.web failed',
        "",
    ]
    assert event_as_text(Interrupting())


def test_text_of_the_server_is_escaped_and_indented() -> None:
    change = Change(CHANGE.address, Action.UPDATE, HOSTILE)
    events: list[Event] = [
        Done(change, HOSTILE, (HOSTILE,)),
        Failed(change, HOSTILE, HOSTILE),
        Skipped(change, HOSTILE),
    ]
    for event in events:
        text = event_as_text(event)
        assert not breaking(text)
        assert all(line.startswith("    ") for line in text.splitlines()[1:])


def test_errors_are_escaped_and_every_line_is_labelled() -> None:
    text = error_as_text(ReconcilerError(f"{HOSTILE}\n  detail", hint=f"way\n{HOSTILE}"))
    assert not breaking(text)
    lines = text.splitlines()
    assert all(line.startswith(("error: ", "  ")) for line in lines)
    assert lines[1] == "error: error: forged"
    assert lines[2:4] == ["  detail", "  hint: way"]


def test_several_problems_are_several_errors() -> None:
    problems = AmbiguousIdentity("a: 2 are named 'A'\n  id: 1\n  id: 2\nb: none has the id 3")
    assert error_as_text(problems) == (
        "error: a: 2 are named 'A'\n  id: 1\n  id: 2\nerror: b: none has the id 3\n"
    )
    assert error_as_text(problems, Style(colour=True)).count("\x1b[1;31merror\x1b[0m: ") == 2


OTHER = Change(Address("batch_export", "pond"), Action.CREATE, "Pond")
PLAN = Plan(PlanSource("a", "o", "https://x.example", "1", "c"), (CHANGE, OTHER))
EVENTS: list[Event] = [
    Planned(PLAN),
    Started(CHANGE),
    Sent("PATCH", "/x", 200, CHANGE),
    Started(OTHER),
    Done(CHANGE, "7"),
    Failed(OTHER, "no"),
]


def test_in_a_pipe_only_ended_changes_are_shown() -> None:
    written: list[str] = []
    listener = Progress(written.append)
    for event in EVENTS:
        listener(event)
    assert written == [
        '~ updated batch_export.lake "Lake" (id 7)\n',
        '✗ create of batch_export.pond "Pond" failed: no\n',
    ]


def test_on_a_terminal_the_last_line_lists_running_changes() -> None:
    written: list[str] = []
    listener = Progress(written.append, live=True, width=60)
    for event in EVENTS:
        listener(event)
    assert [text.replace("\r\x1b[K", "<") for text in written] == [
        "<",
        "<0 of 2 finished; updating batch_export.lake",
        "<0 of 2 finished; updating batch_export.lake, creating bat…",
        '<~ updated batch_export.lake "Lake" (id 7)\n1 of 2 finished; creating batch_export.pond',
        '<✗ create of batch_export.pond "Pond" failed: no\n',
    ]
