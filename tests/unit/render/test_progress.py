"""Progress, the lines of events, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.diagnostics import OfEnvironment
from reconciler.errors import ReconcilerError
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Interrupting,
    Planned,
    Reading,
    Report,
    Sending,
    Sent,
    Skipped,
    Started,
    Verifying,
    Waiting,
)
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan, PlanSource
from reconciler.model.text import duration_as_text
from reconciler.model.values import Address
from reconciler.render.progress import Progress, error_as_text, event_as_text, report_as_text
from tests.unit.render.test_diagnostics import HOSTILE, breaking

CHANGE = Change(Address("batch_export", "lake"), Action.UPDATE, "Lake")


LAKE = 'batch_export.lake "Lake"'
LINES: list[tuple[Event, str]] = [
    (Done(CHANGE, "7", ("name was altered",)), f"~ updated {LAKE} (id 7)\n    ! name was altered"),
    (
        Done(CHANGE, "7", adopted=True),
        f"~ updated {LAKE} (id 7), adopted: its create had no clear answer",
    ),
    (Failed(CHANGE, "no", "ask again"), f"✗ update of {LAKE} failed: no\n    hint: ask again"),
    (Failed(CHANGE, "504", unknown=True), f"✗ update of {LAKE} has an unknown outcome: 504"),
    (Failed(CHANGE, "differs", stale=True), f"✗ update of {LAKE} is stale: differs"),
    (Failed(CHANGE, "no", live_id="7"), f"✗ update of {LAKE} failed (created: id 7): no"),
    (Skipped(CHANGE, "web failed"), f"○ update of {LAKE} skipped: web failed"),
    (Started(CHANGE), ""),
    (Interrupting(), "Stopping: waiting for running changes (at most 5 s). Repeat to stop now."),
    (Interrupting(forced=True), "Stopping now: requests in flight are abandoned."),
]


@pytest.mark.parametrize(("event", "text"), LINES, ids=lambda item: str(item)[:40])
def test_an_event_is_a_line(event: Event, text: str) -> None:
    assert event_as_text(event) == text


def test_text_of_the_server_is_escaped_and_every_line_is_labelled() -> None:
    change = Change(CHANGE.address, Action.UPDATE, HOSTILE)
    done, skipped = Done(change, HOSTILE, (HOSTILE,)), Skipped(change, HOSTILE)
    for event in (done, Failed(change, HOSTILE, HOSTILE), skipped):
        text = event_as_text(event)
        assert not breaking(text)
        assert all(line.startswith("    ") for line in text.splitlines()[1:])
    text = error_as_text(ReconcilerError(f"{HOSTILE}\n  detail", hint=f"way\n{HOSTILE}"))
    assert not breaking(text)
    lines = text.splitlines()
    assert all(line.startswith(("error: ", "  ")) for line in lines)
    assert lines[1] == "error: error: forged"
    assert lines[2:4] == ["  detail", "  hint: way"]


def test_each_problem_is_an_error_with_its_hint() -> None:
    def lines(hint: str) -> list[str]:
        return error_as_text(ReconcilerError("a\n  id: 1\nb", hint=hint)).splitlines()

    one, other = ["error: a", "  id: 1"], "error: b"
    assert lines("pin a\nname b") == [*one, "  hint: pin a", other, "  hint: name b"]
    assert lines("pin both") == [*one, other, "  hint: pin both"]


OTHER = Change(Address("batch_export", "pond"), Action.CREATE, "Pond")
PLAN = Plan(PlanSource("a", "o", "https://x.example", "1"), (CHANGE, OTHER))
LAKE_LINE = '~ updated batch_export.lake "Lake" (id 7)\n'
POND_LINE = '✗ create of batch_export.pond "Pond" failed: no\n'


class Screen:
    """What a progress writes, with a clock that tests move. `<` is the removal of the status."""

    def __init__(self, **options: Any) -> None:
        self.now, self.text = 0.0, ""
        self.progress = Progress(self.write, self.write, clock=lambda: self.now, **options)

    def write(self, text: str) -> None:
        self.text += text.replace("\r\x1b[K", "<")

    def after(self, seconds: float, *events: Event) -> str:
        """Return what is written for events after some seconds; without events for a tick."""
        self.now += seconds
        self.text = ""
        for event in events:
            self.progress(event)
        if not events:
            self.progress.tick()
        return self.text


def test_in_a_pipe_the_status_is_a_line_every_five_seconds() -> None:
    screen = Screen()
    screen.after(0, Sending("GET", "/p"), Reading("projects", 100, 250), Sent("GET", "/p", 200))
    assert screen.after(4) == ""
    assert screen.after(1) == "Reading    projects 100/250 · 1 call\n"
    assert screen.after(4.9) == ""
    screen.after(0, Reading("batch_exports", 4300, 10_000), Reading("projects", 250, 250))
    line = "Reading    projects 250/250 · batch exports 4,300/10,000 · 1 call\n"
    assert screen.after(0.2) == line
    assert screen.after(0, Planned(PLAN), Started(CHANGE), Started(OTHER)) == ""
    assert screen.after(1, Done(CHANGE, "7"), Failed(OTHER, "no")) == LAKE_LINE + POND_LINE


def test_f5_a_wait_is_a_line_when_it_begins_also_in_a_pipe() -> None:
    screen = Screen()
    screen.after(0, Planned(PLAN), Started(CHANGE), Started(OTHER))
    wait = Waiting(41, "rate limit (480 a minute)")
    line = "Applying   0/2 · 2 at once · waiting 41 s for the rate limit (480 a minute)\n"
    assert screen.after(1, wait) == line
    assert screen.after(0, wait, wait) == ""
    assert screen.after(30) == ""
    assert screen.after(30) == "Applying   0/2 · 2 at once\n"
    assert Screen().after(0, Planned(PLAN), Waiting(1.5, "retry")) == ""


def test_op1_in_a_pipe_a_long_wait_is_a_line_when_something_new_is_reached() -> None:
    screen = Screen()
    lines = [
        screen.after(30, Sending("GET", "/r"), Sent("GET", "/r", 200), Waiting(30, f"{runs} runs"))
        for runs in (0, 0, 0, 1, 0, 1, 2)
    ]
    assert [number for number, line in enumerate(lines) if line] == [0, 2, 3, 5, 6]
    assert lines[-1] == "Reading    7 calls · waiting 30 s: 2 runs\n"


def test_on_a_terminal_the_status_is_overwritten_and_stays_the_last_line() -> None:
    screen = Screen(live=True)
    assert screen.after(0, Planned(PLAN)) == ""
    assert screen.after(0.1) == "<Applying   0/2"
    assert screen.after(1, Done(CHANGE, "7")) == f"<{LAKE_LINE}<Applying   1/2"
    assert screen.after(0.05, Started(OTHER)) == ""
    assert screen.after(0.05, Failed(OTHER, "no")) == f"<{POND_LINE}<Applying   2/2"
    drawn = [screen.after(0.01, Reading("projects", number)) for number in range(100)]
    assert 9 <= sum(map(bool, drawn)) <= 10
    screen.text = ""
    screen.progress.clear()
    assert screen.text == "<"
    assert screen.after(10) == ""


def test_the_status_fits_the_terminal_and_is_escaped() -> None:
    screen = Screen(live=True, width=40)
    text = screen.after(1, Planned(PLAN), Sent("GET", HOSTILE, 200), Waiting(300, HOSTILE * 5))
    assert len(text.rpartition("<")[2]) < 40
    assert not breaking(text)


def test_a_request_without_an_answer_is_shown() -> None:
    screen = Screen()
    screen.after(0, Sending("GET", "/api/organizations/o/projects/"))
    line = "Reading    0 calls · no answer for 5 s: GET /api/organizations/o/projects/\n"
    assert screen.after(5) == line


def test_verification_is_a_phase_of_its_own() -> None:
    screen = Screen()
    screen.after(0, Planned(PLAN), Done(CHANGE, "7"), Verifying(), Reading("projects", 2, 2))
    assert screen.after(5) == "Verifying  projects 2/2 · 0 calls\n"
    assert screen.after(5, Ended(Report())) == ""
    assert screen.after(10) == ""


def test_skips_for_one_reason_are_counted_after_the_third() -> None:
    screen = Screen()
    for number in range(10):
        change = Change(Address("batch_export", f"e{number}"), Action.CREATE, "E")
        screen.progress(Skipped(change, "the run was interrupted"))
    screen.progress(Skipped(CHANGE, "create of project.web failed"))
    screen.progress.clear()
    screen.progress.clear()
    lines = screen.text.splitlines()
    assert len(lines) == 5
    assert lines[-1] == "○ 7 more skipped: the run was interrupted"


CREATED = Change(Address("batch_export", "lake"), Action.CREATE, "lake")
UPDATED = Change(Address("batch_export", "pond"), Action.UPDATE, "pond")
AGAIN = "Run the command again to continue. Completed changes are not repeated.\n"
REFUSED = "Correct what the service refused, then apply again. Completed changes stay.\n"
BOTH = (Failed(CREATED, "400", refused=True), Failed(UPDATED, "503"))
STALE = (Failed(CREATED, "no", stale=True), Failed(UPDATED, "no"))
SKIPPED = (Skipped(UPDATED, "x"),)


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (Report(), ""),
        (
            Report(failed=(Failed(CREATED, "no"),), skipped=SKIPPED, interrupted=True),
            f"\nInterrupted: no changes; 1 failed, 1 skipped\n{AGAIN}",
        ),
        pytest.param(
            Report(failed=BOTH), f"\nApplied: no changes; 2 failed\n{REFUSED}", id="plan_v11"
        ),
        (Report(failed=STALE), f"\nApplied: no changes; 1 failed, 1 stale\n{AGAIN}"),
    ],
)
def test_the_report_of_a_run(report: Report, text: str) -> None:
    assert report_as_text(report) == text


def test_unknown_outcomes_are_listed_with_what_to_do() -> None:
    unknown = Failed(CREATED, "504", "look", unknown=True)
    text = report_as_text(Report((Done(UPDATED, "2", adopted=True),), (unknown,)))
    assert text.startswith(
        "\nApplied: 1 updated (1 adopted); 1 with an unknown outcome\n"
        "  ✗ create of batch_export.lake has an unknown outcome: 504\n    hint: look\n"
    )
    assert "Run `reconciler plan` to see what is left" in text


def test_durations_are_rounded_up() -> None:
    shown = {-1: "0 s", 40.2: "41 s", 59.9: "1 min", 80: "1 min 20 s", 3600: "1 h"}
    shown |= {7_501: "2 h 6 min"}
    assert {seconds: duration_as_text(seconds) for seconds in shown} == shown


def test_verbose_lists_every_request() -> None:
    failed = Sent("PATCH", "/api/x/", None, 2, 30.0, error="no answer in 30 s")
    line = "PATCH /api/x/ no answer (no answer in 30 s) 30000 ms (attempt 2)\n"
    assert Screen(verbose=True).after(0, failed) == line


def test_a_problem_with_details_is_one_of_several_environments() -> None:
    error = ReconcilerError("a: 2 are named 'A'\n  id: 1\n  id: 2\nb: none has the id 3")
    item = OfEnvironment[Plan]("dev", error=error)
    assert item.problems == ("a: 2 are named 'A'; id: 1; id: 2", "b: none has the id 3")
