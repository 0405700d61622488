"""The report of a run, and durations."""

from __future__ import annotations

import pytest

from reconciler.model.event import Done, Failed, Report, Skipped
from reconciler.model.kind import Action
from reconciler.model.plan import Change
from reconciler.model.text import duration_as_text, estimate_as_text
from reconciler.model.values import Address
from reconciler.render.progress import report_as_text

LAKE = Change(Address("batch_export", "lake"), Action.CREATE, "lake")
POND = Change(Address("batch_export", "pond"), Action.UPDATE, "pond")
AGAIN = "Run the command again to continue. Completed changes are not repeated.\n"


def test_an_empty_run_has_no_report() -> None:
    assert report_as_text(Report()) == ""


def test_a_complete_run_is_one_line() -> None:
    report = Report(done=(Done(LAKE, "1"), Done(POND, "2")))
    assert report_as_text(report) == "\nApplied: 1 created, 1 updated\n"


def test_a_run_that_failed_in_part_says_how_to_continue() -> None:
    report = Report(failed=(Failed(LAKE, "no"),), skipped=(Skipped(POND, "x"),), interrupted=True)
    assert report_as_text(report) == f"\nInterrupted: no changes; 1 failed, 1 skipped\n{AGAIN}"


def test_plan_v11_what_the_service_refuses_is_not_tried_again() -> None:
    report = Report(failed=(Failed(LAKE, "400", refused=True), Failed(POND, "503")))
    assert report_as_text(report) == (
        "\nApplied: no changes; 2 failed\n"
        "Correct what the service refused, then apply again. Completed changes stay.\n"
    )


def test_unknown_outcomes_are_listed_with_what_to_do() -> None:
    report = Report(
        done=(Done(POND, "2", adopted=True),), failed=(Failed(LAKE, "504", "look", unknown=True),)
    )
    text = report_as_text(report)
    assert text.startswith(
        "\nApplied: 1 updated (1 adopted); 1 with an unknown outcome\n"
        "  ✗ create of batch_export.lake has an unknown outcome: 504\n    hint: look\n"
    )
    assert "Run `reconciler plan` to see what is left" in text


def test_stale_changes_are_counted_apart() -> None:
    report = Report(failed=(Failed(LAKE, "no", stale=True), Failed(POND, "no")))
    assert report_as_text(report) == f"\nApplied: no changes; 1 failed, 1 stale\n{AGAIN}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-1, "0 s"),
        (40.2, "41 s"),
        (59.9, "1 min"),
        (80, "1 min 20 s"),
        (3600, "1 h"),
        (7_501, "2 h 6 min"),
    ],
)
def test_durations_are_rounded_up(seconds: float, text: str) -> None:
    assert duration_as_text(seconds) == text


def test_an_estimate_names_calls_time_and_the_hourly_limit() -> None:
    assert estimate_as_text(1, 0.2) == "1 call, about 1 s"
    assert estimate_as_text(1_212, 130) == "1,212 calls, about 2 min 10 s"
    text = estimate_as_text(9_000, 4_000, beyond_hour=True)
    assert text == "9,000 calls, about 1 h 7 min; more than the hourly limit allows at once"
