"""`backfill`: gaps close, nothing is started twice or after a stop, and every end is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.backfill.planning import ClosedGaps, SincePause, Span, Wanted
from reconciler.commands.backfill.starting import Backfilled, backfill, cancel_backfills
from reconciler.commands.gaps import gaps
from reconciler.commands.sending import Outputs
from reconciler.commands.show import audit_of
from reconciler.commands.workspace import Workspace
from reconciler.errors import ReconcilerError
from reconciler.model.decoding import read_log
from reconciler.model.event import Event, Sent, Waiting
from reconciler.model.run import BackfillPlan
from reconciler.render.options import DEFAULTS
from reconciler.render.runs import ends_as_text
from tests.support.cli import write
from tests.support.emulator import DIALECTS
from tests.support.reports import written
from tests.support.simulated import Begin, Simulated

MORNING = Span("2026-10-19T00:00Z", "2026-10-19T05:00Z")
DAY = Span("2026-10-19", "2026-10-20")
POSTS = {"method": "POST", "path": "*/backfills/"}
CANCELS = {"method": "POST", "path": "*/cancel/", "from": 2}


def after_five_hours(begin: Begin, dialect: str = "2026", **settings: Any) -> Simulated:
    """Return a service with the hourly export `Lake`, five hours old."""
    world = begin(dialect, auto_pause=False)
    world.create()
    world.advance(hours=5)
    world.service.admin("PUT", "settings", settings)
    return world


def fault(world: Simulated, match: dict[str, Any], **rule: Any) -> None:
    """Set a fault of the requests that match, or none."""
    world.service.admin("PUT", "faults", [{"match": match, **rule}] if rule else [])
    world.service.clear_requests()


@pytest.fixture
def world(begin: Begin) -> Simulated:
    return after_five_hours(begin)


def filled(world: Simulated, wanted: Wanted, names: str = "Lake", **options: Any) -> Backfilled:
    return world.run(lambda it: backfill(it, (names,), wanted, auto_approve=True, **options))


def stopped_by(
    world: Simulated, wanted: Wanted, is_last: Callable[[Event], bool], *names: str
) -> Backfilled:
    """Backfill and wait, with a stop at an event."""

    def stopping(workspace: Workspace) -> Workspace:
        runtime = workspace.runtime

        def listen(event: Event) -> None:
            if is_last(event):
                runtime.stop.request()

        return replace(workspace, runtime=replace(runtime, listen=listen))

    return world.run(
        lambda it: backfill(stopping(it), names or ("Lake",), wanted, auto_approve=True, wait=True)
    )


def is_post(event: Event) -> bool:
    return isinstance(event, Sent) and event.method == "POST"


def open_gaps(world: Simulated) -> int:
    return world.run(gaps).report.gaps


def ends(result: Backfilled) -> list[tuple[str, str, str]]:
    return [
        (f"{end.planned.start:%d %H:%M}", f"{end.planned.end:%d %H:%M}", end.state.value)
        for end in result.ends
    ]


def posts(world: Simulated) -> int:
    return len([name for method, name in world.service.writes() if name.startswith("backfill")])


def only(world: Simulated) -> str:
    (export,) = world.service.exports().values()
    return str(export["id"])


# Gaps


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_gaps_are_closed_and_nothing_is_proposed_again(dialect: str, begin: Begin) -> None:
    world = begin(dialect, auto_pause=False)
    failed = {"match": {"name": "Lake", "times": 3}, "status": "Failed"}
    world.live(world.create(), "5h", failed, "6h", "pause", "30h", "unpause", "4h")
    assert open_gaps(world) == 33
    # Apply P1: a pause stays. docs/on-call.md does it for every export.
    planned = filled(world, ClosedGaps(failed=True), dry_run=True).plan
    assert [f"{item.end - item.start}" for item in planned.backfills] == ["3:00:00"]
    # The export has its ten latest runs: more must not be backfilled, and exported twice.
    planned = filled(world, SincePause(), dry_run=True).plan
    assert [f"{item.end - item.start}" for item in planned.backfills] == ["1 day, 6:00:00"]
    assert ends(filled(world, ClosedGaps(), wait=True)) == [
        ("20 15:00", "20 18:00", "completed"),
        ("20 21:00", "22 03:00", "completed"),
    ]
    assert open_gaps(world) == 0
    world.service.clear_requests()
    assert filled(world, ClosedGaps()).plan.backfills == ()
    assert posts(world) == 0


def test_gaps_across_a_change_of_daylight_saving_are_closed_by_dates(begin: Begin) -> None:
    world = begin("2026", "2026-10-29T12:00:00Z", auto_pause=False)
    failed = {"match": {"name": "Lake", "times": 3}, "status": "Failed"}
    lake = world.create(interval="day", timezone="US/Eastern", offset_hour=3)
    world.live(lake, "1d", failed, "6d")
    assert open_gaps(world) == 3
    world.service.clear_requests()
    result = filled(world, ClosedGaps(), wait=True)
    assert ends(result) == [("30 07:00", "02 08:00", "completed")]
    assert (result.plan.runs, open_gaps(world)) == (3, 0)
    sent = [it["body"] for it in world.service.requests() if it["path"].endswith("/backfills/")]
    assert {"start_at": "2026-10-30", "end_at": "2026-11-02"} in sent


def test_trap_15_47_leading_empty_intervals_are_settled_by_the_backfill(begin: Begin) -> None:
    world = begin("2026", auto_pause=False)
    world.live(world.create(), "pause", "10h")
    for first, hours, expected in (
        ("2026-10-20T16:20:00Z", 10, ("20 10:00", "20 20:00", "completed")),
        ("never", 3, ("20 20:00", "20 23:00", "empty")),
    ):
        world.service.admin("PUT", "settings", {"first_data_at": first})
        assert open_gaps(world) == hours
        assert ends(filled(world, ClosedGaps(), wait=True)) == [expected]
        assert open_gaps(world) == 0
        world.advance(hours=3)


# A range


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trap_15_28_an_unaligned_range_is_aligned_in_the_plan(dialect: str, begin: Begin) -> None:
    world = after_five_hours(begin, dialect)
    result = filled(world, Span("2026-10-19T10:10Z", "2026-10-19T12:20Z"), wait=True)
    assert ends(result) == [("19 10:00", "19 13:00", "completed")]
    (note,) = result.plan.objects[0].notes
    assert note == (
        "aligned to whole intervals: 2026-10-19T10:10:00Z to 2026-10-19T12:20:00Z becomes "
        "2026-10-19T10:00:00Z to 2026-10-19T13:00:00Z"
    )
    last = filled(world, Span("2026-10-20T13:00Z", "2026-10-20T15:20Z"), dry_run=True)
    assert [f"{item.end:%H:%M}" for item in last.plan.backfills] == ["15:00"]
    left_out = "the interval from 2026-10-20T15:00:00Z has not ended and is left out"
    assert last.plan.objects[0].notes == (f"{left_out}; its scheduled run exports it",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Lake", "what to backfill is not clear"),
        ("--gaps", "no export is named"),
        ("Lake --since 7d", "--since needs --gaps"),
        ("Lake --gaps --since soon", "invalid duration"),
        ("Lake --gaps --since-pause", "what to backfill is not clear"),
        ("Lake --gaps --from 2026-10-19 --since 3d", "--since needs --gaps, and excludes --from"),
        ("Lake --from 2026-10-19", "--from and --to are needed together"),
        ("Lake --from 2026-10-19 --to 2026-10-18", "empty time range"),
        pytest.param(*("Lake --from 2026-10-19 --to 2026-10-19", "empty time range"), id="X9"),
        ("Lake --from 2026-10-19 --to 2030-10-18", "ends in the future: 2030-10-18T00:00:00Z"),
        ("Lake --from soon --to 2026-10-18", "invalid time"),
        ("Lake --from 2026-10-20T15:10Z --to 2026-10-20T15:20Z", "ends at 2026-10-20T16:00:00Z\n"),
        ("Lake --since-pause", "no pause is known"),
        ("Lake nope --gaps", "nothing matches 'nope'"),
        ("Lake --project Moor --gaps", "nothing matches 'Moor'"),
        ("Lake --cancel --log-file x", "--cancel excludes --log-file"),
        ("Lake --cancel --dry-run", "--cancel excludes --dry-run"),
        ("Lake --cancel --format json", "--cancel excludes --format json"),
        ("Lake --cancel --to 2026-10-19", "--cancel excludes --to"),
    ],
)
def test_an_invalid_command_sends_nothing(words: str, message: str, world: Simulated) -> None:
    world.service.clear_requests()
    ran = world.ran("backfill", *words.split(), "--auto-approve", code=64)
    assert (message in ran.err, posts(world)) == (True, 0), ran.err


def test_without_an_approval_nothing_is_sent(world: Simulated) -> None:
    async def refuse(_: BackfillPlan) -> bool:
        return False

    world.service.clear_requests()
    with pytest.raises(ReconcilerError, match="not approved"):
        world.run(lambda it: backfill(it, ("Lake",), DAY, approve=refuse))
    ran = world.ran("backfill", "Lake", "--from", DAY.first, "--to", DAY.last, code=64)
    assert ("24 runs" in ran.out, "pass --auto-approve" in ran.err) == (True, True)
    assert posts(world) == 0


# Ends


FULL = {"match": {"backfill": True, "times": 2}, "status": "Failed", "error": "Full."}
PARTLY = "2 of 5 runs did not complete (Failed: Full.)"
LATER = "2026-10-19T03:00:00Z"


@pytest.mark.parametrize(
    ("dialect", "settings", "rules", "state", "detail"),
    [
        pytest.param("2025", {"first_data_at": "never"}, [], "empty", "no data", id="trap_15_47"),
        pytest.param("2026", {}, [FULL], "partly", PARTLY, id="trap_15_48"),
        pytest.param("2025", {"first_data_at": LATER}, [], "completed", "", id="trap_15_59_2025"),
        pytest.param("2026", {"first_data_at": LATER}, [], "completed", "", id="trap_15_59_2026"),
    ],
)
def test_the_end_of_a_backfill_is_that_of_its_row(
    dialect: str, settings: Any, rules: list[Any], state: str, detail: str, begin: Begin
) -> None:
    """Also if the service moved its start to the first data."""
    world = after_five_hours(begin, dialect, **settings)
    world.outcomes(*rules)
    (end,) = filled(world, MORNING, wait=True).ends
    assert (end.state.value, detail in (end.detail or "")) == (state, True), end.detail
    (export,) = world.service.exports().values()
    rows = world.call("GET", export["id"], "backfills/")["results"]
    assert [row["id"] for row in rows] == ([end.id] if end.id else [])


@pytest.mark.parametrize(
    ("dialect", "delay", "rule", "state", "most_waits"),
    [
        pytest.param("2025", 100, {"fault": "drop", "when": "after"}, "completed", 400, id="lost"),
        pytest.param("2026", 100, {"fault": "drop", "when": "after"}, "completed", 400, id="new"),
        pytest.param("2026", 90, {}, "completed", 400, id="trap_15_60_late"),
        pytest.param("interface", 0, {"fault": "drop"}, "unknown", 0, id="trap_15_60_no_rows"),
        pytest.param("2026", 0, {"fault": "drop"}, "unknown", 200, id="trap_15_60_unknown"),
        pytest.param("2026", 0, {"fault": "error", "status": 500}, "unknown", 30, id="fidelity_f4"),
    ],
)
def test_trap_15_59_a_backfill_is_sent_once_and_looked_for(
    dialect: str, delay: int, rule: dict[str, Any], state: str, most_waits: int, begin: Begin
) -> None:
    world = after_five_hours(begin, dialect, backfill_row_delay_seconds=delay)
    match = {**POSTS, "path": f"*/backfill{'' if dialect == 'interface' else 's'}/"}
    fault(world, match, **({"when": "before", **rule} if rule else {}))
    assert ends(filled(world, MORNING, wait=True)) == [("19 00:00", "19 05:00", state)]
    assert posts(world) == 1
    assert sum(world.waits) <= most_waits


def test_a_backfill_that_runs_already_is_not_started_again(world: Simulated) -> None:
    world.service.clear_requests()
    for state in ("started", "running"):
        assert ends(filled(world, MORNING)) == [("19 00:00", "19 05:00", state)]
    assert posts(world) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trap_15_61_one_interval_is_tried_first(dialect: str, begin: Begin) -> None:
    world = after_five_hours(begin, dialect)
    world.outcomes({"match": {"name": "Lake"}, "status": "Failed", "error": "No\x1b[1m."})
    world.advance(hours=5)
    world.service.clear_requests()
    result = filled(world, ClosedGaps())
    first, rest = ("20 15:00", "20 16:00"), ("20 16:00", "20 20:00")
    assert ends(result) == [(*first, "failed"), (*rest, "skipped")]
    assert posts(world) == 1
    text = written("backfills", "text", result.plan)
    assert "last-run-failed" in text
    ended = ends_as_text(result.report.objects, DEFAULTS, "default")
    assert "\x1b" not in text + ended
    world.outcomes()
    completed = [(*first, "completed"), (*rest, "completed")]
    assert ends(filled(world, ClosedGaps(), wait=True)) == completed
    assert open_gaps(world) == 0


@pytest.mark.parametrize(
    ("dialect", "rule"),
    [
        ("2026", {}),
        ("interface", {"fault": "error", "code": "too_many_concurrent_backfills", "status": 429}),
    ],
)
def test_too_many_backfills_are_waited_for(
    dialect: str, rule: dict[str, Any], begin: Begin
) -> None:
    world = after_five_hours(begin, dialect, backfill_limit=0)
    write(world.workspace.folder, {"reconciler.yaml": "version: 1\nclient: {max_wait: 0}\n"})
    fault(world, {"path": "*/backfill/"}, **rule)
    ran = world.ran("backfill", "Lake", "--from", DAY.first, "--to", DAY.last, "-y", code=3)
    assert posts(world) == 1
    assert "hint: wait until running backfills of this project finish" in ran.out


# A stop


def test_a_stop_starts_no_further_backfill(begin: Begin) -> None:
    world = begin("2026")
    paused = {"paused": True, "last_paused_at": "2026-01-01T00:00:00Z"}
    exports = {world.create(name, interval="day", **paused) for name in ("A", "B")}
    world.service.clear_requests()
    result = stopped_by(world, SincePause(), is_post, "A", "B")
    assert (posts(world), result.report.exit_code) == (1, 130)
    assert sorted(end.state.value for end in result.ends) == ["skipped", "started"]
    sent = [item["path"] for item in world.service.requests() if item["method"] == "POST"]
    (second,) = exports - {path.split("/")[-3] for path in sent}
    text = ends_as_text(result.report.objects, DEFAULTS, "default")
    assert f"      reconciler backfill batch_export.id:{second} --from 2026-01-01T" in text


def test_a_stop_while_waiting_leaves_the_backfill_running(world: Simulated) -> None:
    (end,) = stopped_by(
        world,
        Span("2026-10-01", "2026-10-10"),
        lambda event: isinstance(event, Waiting) and "of 216 runs" in event.reason,
    ).ends
    assert (end.state.value, end.detail) == ("started", "it goes on")
    assert (end.hint or "").startswith("cancel it with: reconciler backfill --cancel ")
    (row,) = world.call("GET", only(world), "backfills/")["results"]
    assert (row["id"], row["status"]) == (end.id, "Running")


def test_a_backfill_is_reported_if_its_row_is_hidden(begin: Begin) -> None:
    """By a stop, and by an answer of another form."""
    world = after_five_hours(begin, "2025")
    result = stopped_by(world, MORNING, is_post)
    assert ends(result) == [("19 00:00", "19 05:00", "started")]
    world = after_five_hours(begin, "2025")
    reads = {"method": "GET", "path": "*/backfills/", "from": 2}
    fault(world, reads, fault="body", value=[])
    assert ends(filled(world, MORNING)) == [("19 00:00", "19 05:00", "started")]


# Cancel


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_running_backfills_are_cancelled(dialect: str, begin: Begin) -> None:
    """After approval. Also one whose answer is lost, but not one that ended meanwhile.

    Those that were cancelled before an error are named.
    """
    world = after_five_hours(begin, dialect)
    export = only(world)
    for first, last in pairwise(("01", "04", "07", "10", "13")):
        filled(world, Span(f"2026-10-{first}", f"2026-10-{last}"))
    fault(world, CANCELS, fault="error", status=400)
    refused = world.ran("backfill", "Lake", "--cancel", code=64)
    assert "nothing was sent\n  hint: pass --auto-approve\n" in refused.err
    ran = world.ran("backfill", "Lake", "--cancel", "-y", code=3)
    assert refused.out == ran.out
    days = "2026-10-01T00:00:00Z to 2026-10-04T00:00:00Z"
    assert f"  cancel {days}  0 of 72 runs ended (backfill " in ran.out
    calls = [call["path"] for call in world.service.requests() if call["method"] == "POST"]
    assert f"cancelled backfill {calls[0].split('/')[-3]}\n" in ran.err
    rows = world.call("GET", export, "backfills/")["results"]
    left = [row["id"] for row in rows if row["status"] != "Cancelled"]
    assert len(left) == 3
    fault(world, {**CANCELS, "times": 1}, fault="drop", when="after")

    async def refuse(*_: Any) -> bool:
        return False

    async def meanwhile(*_: Any) -> bool:
        world.call("POST", export, f"backfills/{left[-1]}/cancel/", {})
        return True

    world.service.clear_requests()
    with pytest.raises(ReconcilerError, match="not approved; nothing was sent"):
        world.run(lambda it: cancel_backfills(it, "Lake", approve=refuse))
    assert world.service.writes() == []
    ids = world.run(lambda it: cancel_backfills(it, "Lake", approve=meanwhile))
    assert set(ids) == set(left[:-1])
    rows = world.call("GET", export, "backfills/")["results"]
    assert {row["status"] for row in rows} == {"Cancelled"}
    assert world.ran("backfill", "Lake", "--cancel").out == "no backfill runs\n"


# The audit log


@pytest.mark.parametrize(
    ("rule", "status", "code"),
    [
        ({}, 201, 0),
        ({"fault": "error", "status": 400}, 400, 3),
        ({"fault": "error", "status": 500}, 500, 3),
        ({"fault": "drop", "when": "before"}, None, 3),
    ],
)
def test_the_audit_log(rule: Any, status: int | None, code: int, world: Simulated) -> None:
    fault(world, POSTS, **rule)
    log = world.workspace.folder / "audit.jsonl"
    result = filled(world, DAY, outputs=Outputs(log))
    (run,) = runs = read_log(log.read_bytes()) or ()
    sent = [line for line in map(json.loads, log.read_bytes().splitlines()) if "status" in line]
    assert [line["status"] for line in sent if line["method"] != "GET"] == [status]
    assert (run.exit_code, run.plan_id) == (code, result.plan.plan_id)
    audit = audit_of(runs)
    text = written("audit", "text", audit)
    assert audit.shown.code == code
    assert "1 backfill, 24 runs." in text
    advice = "Look at the backfills and runs before you start a backfill again."
    assert (advice in text) == bool(code)
