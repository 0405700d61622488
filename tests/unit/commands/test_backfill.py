"""Plans of backfills: what is tried first, what readers are warned of, and what approves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.commands.backfill.planning import (
    approval_of_backfills,
    consequences_of,
    of_gaps,
    with_trial,
)
from reconciler.commands.gaps import Gap, GapState
from reconciler.kinds.batch_export.behaviour import backfill_warnings
from reconciler.model.kind import Dialect
from reconciler.model.plan import PlanSource, Severity
from reconciler.model.run import BackfillPlan, ObjectBackfills, PlannedBackfill, Run
from reconciler.model.times import Schedule, bound
from reconciler.model.values import Address

HOUR = timedelta(hours=1)
START = datetime(2026, 6, 1, tzinfo=UTC)
NOW = START + 12.5 * HOUR
HOURLY = Schedule.of({"interval": "hour"}, Dialect.V2026)


def gap(first: int, last: int, state: GapState, partly: int = 0) -> Gap:
    return Gap(START + first * HOUR, START + last * HOUR, state, last - first, partly)


def run(status: str) -> Run:
    return Run("1", status, START, START + HOUR, created_at=START + HOUR)


def rules(*latest: Run, gaps: tuple[Gap, ...] = (), **body: object) -> list[str]:
    planned = with_trial(HOURLY, of_gaps([gap(0, 3, GapState.MISSING), *gaps]), latest)
    schedule = Schedule.of({"interval": "hour", **body}, Dialect.V2026)
    return [item.rule for item in consequences_of(planned, schedule, gaps, latest)]


def test_neighbours_of_several_states_are_one_backfill() -> None:
    states = (GapState.MISSING, GapState.FAILED, GapState.PAUSED)
    gaps = [gap(number, number + 1, state) for number, state in enumerate(states)]
    left_out = [gap(3, 4, GapState.BILLING), gap(5, 6, GapState.UNKNOWN)]
    last = gap(7, 9, GapState.MISSING, partly=1)
    assert of_gaps([*gaps, *left_out, last]) == [
        PlannedBackfill(START, START + 3 * HOUR, 3),
        PlannedBackfill(START + 7 * HOUR, START + 9 * HOUR, 2, partly=1),
    ]


def test_trap_15_61_a_failed_last_run_is_tried_first() -> None:
    planned = of_gaps([gap(0, 3, GapState.FAILED)])
    first, rest = with_trial(HOURLY, planned, [run("Running"), run("Failed"), run("Completed")])
    assert (first.runs, first.trial, rest.runs, rest.trial) == (1, True, 2, False)
    assert (first.end, rest.end) == (rest.start, planned[0].end)
    assert with_trial(HOURLY, planned, [run("Completed"), run("Failed")]) == tuple(planned)
    assert with_trial(HOURLY, planned, [run("FailedBilling")]) == tuple(planned)


def test_warnings_concern_this_plan_only() -> None:
    assert rules(run("Completed")) == []
    assert rules(run("Failed")) == ["last-run-failed"]
    assert rules(run("FailedBilling")) == ["billing-limit"]
    assert rules(gaps=(gap(4, 5, GapState.BILLING),)) == ["billing-limit"]
    assert rules(gaps=(gap(4, 5, GapState.MISSING, partly=1),)) == ["exported-in-part"]
    assert rules(paused=True) == ["stays-paused"]


def test_many_runs_and_ten_times_as_many() -> None:
    """The runs of all backfills of an export count."""

    def severities(runs: int) -> list[Severity]:
        planned = [PlannedBackfill(START, START + HOUR, count) for count in (500, runs - 500)]
        return [item.severity for item in consequences_of(planned, HOURLY, (), ())]

    assert severities(1_000) == []
    assert severities(1_001) == severities(10_000) == [Severity.WARNING]
    assert severities(10_001) == [Severity.DANGER]


def test_trap_15_58_what_a_backfill_may_duplicate() -> None:
    def rules(model: str, of_type: str) -> list[str]:
        body = {"model": model, "destination": {"type": of_type}}
        return [item.rule for item in backfill_warnings(body)]

    assert rules("events", "S3") == ["selects-by-event-time"]
    assert rules("events", "HTTP") == ["selects-by-event-time", "sends-again"]
    assert rules("events", "Snowflake") == ["selects-by-event-time", "appends-rows"]
    assert rules("persons", "Snowflake") == []


def test_a_danger_asks_for_the_name() -> None:
    def approved(answer: str, *latest: Run) -> bool:
        shown = consequences_of((), HOURLY, (), latest)
        item = ObjectBackfills(Address("a", "b"), "Lake", "1", None, None, (), shown)
        source = PlanSource("production", "org", "https://eu.posthog.com", "1")
        return approval_of_backfills(BackfillPlan(source, (item,))).is_given_by(answer)

    assert approved("y\n")
    assert not approved("y\n", run("FailedBilling"))
    assert approved("Lake\n", run("FailedBilling"))


def test_a_date_is_a_day_of_the_zone() -> None:
    body = {"interval": "day", "timezone": "Europe/Berlin", "offset_hour": 3}
    daily = Schedule.of(body, Dialect.V2026)
    assert bound(daily, "2026-10-25", option="--from").isoformat() == "2026-10-25T02:00:00+00:00"
    assert bound(daily, "2026-10-26T00:00Z", option="--from").hour == 0
    assert bound(HOURLY, "2026-10-25", option="--from").hour == 0
