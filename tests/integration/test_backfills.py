"""`backfill` in simulated time: gaps close, nothing is started twice, and every end is reported."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.backfill.planning import ClosedGaps, SincePause, Span, Wanted
from reconciler.commands.backfill.starting import Backfilled, backfill, cancel_backfills
from reconciler.commands.gaps import gaps
from reconciler.commands.screen import exit_code_of_run
from reconciler.commands.sending import Outputs
from reconciler.commands.show import audit_of
from reconciler.commands.workspace import Workspace
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.decoding import read_log
from reconciler.model.event import Event, Sent, Waiting
from reconciler.model.run import BackfillPlan
from reconciler.render.options import DEFAULTS
from reconciler.render.runs import ends_as_text
from tests.conftest import StartService
from tests.support.cli import reconciler
from tests.support.emulator import DIALECTS
from tests.support.reports import written
from tests.support.simulated import Simulated, start_simulated

start = partial(start_simulated, auto_pause=False)


def after_five_hours(service_of: StartService, folder: Path, dialect: str = "2026") -> Simulated:
    """Return a service with the hourly export `Lake`, five hours old."""
    world = start(service_of, folder, dialect)
    world.create()
    world.advance(hours=5)
    return world


async def refuse(_: BackfillPlan) -> bool:
    return False


def filled(world: Simulated, wanted: Wanted, names: str = "Lake", **options: Any) -> Backfilled:
    return world.run(lambda it: backfill(it, (names,), wanted, auto_approve=True, **options))


def open_gaps(world: Simulated) -> int:
    return world.run(gaps).report.gaps


def ends(result: Backfilled) -> list[tuple[str, str, str]]:
    return [
        (f"{end.planned.start:%d %H:%M}", f"{end.planned.end:%d %H:%M}", end.state.value)
        for end in result.ends
    ]


def posts(world: Simulated) -> int:
    return len([name for method, name in world.service.writes() if name.startswith("backfill")])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_after_a_backfill_of_all_gaps_there_are_none_and_nothing_is_proposed(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, dialect)
    export = world.create()
    world.advance(hours=5)
    world.outcomes({"match": {"name": "Lake", "times": 3}, "status": "Failed"})
    world.advance(hours=6)
    world.call("POST", export, "pause/", {})
    world.advance(hours=30)
    world.call("POST", export, "unpause/", {})
    world.advance(hours=4)
    assert open_gaps(world) == 33
    result = filled(world, ClosedGaps(), wait=True)
    assert ends(result) == [
        ("20 15:00", "20 18:00", "completed"),
        ("20 21:00", "22 03:00", "completed"),
    ]
    assert open_gaps(world) == 0
    world.service.clear_requests()
    assert filled(world, ClosedGaps()).plan.backfills == ()
    assert posts(world) == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_since_a_pause_ends_with_the_first_run_after_it_however_long_ago_that_was(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    """An export has its ten latest runs: more must not be backfilled, and exported twice."""
    world = start(service_of, tmp_path, dialect)
    export = world.create()
    world.advance(hours=5)
    world.call("POST", export, "pause/", {})
    world.advance(hours=6)
    world.call("POST", export, "unpause/", {})
    world.advance(hours=20)
    planned = filled(world, SincePause(), dry_run=True).plan
    assert [f"{item.end - item.start}" for item in planned.backfills] == ["6:00:00"]


def test_gaps_across_a_change_of_daylight_saving_are_closed_by_dates(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026", "2026-10-29T12:00:00Z")
    world.create(interval="day", timezone="US/Eastern", offset_hour=3)
    world.advance(days=1)
    world.outcomes({"match": {"name": "Lake", "times": 3}, "status": "Failed"})
    world.advance(days=6)
    assert open_gaps(world) == 3
    result = filled(world, ClosedGaps(), wait=True)
    assert ends(result) == [("30 07:00", "02 08:00", "completed")]
    assert result.plan.runs == 3
    assert open_gaps(world) == 0


def test_trap_15_47_leading_empty_intervals_are_settled_by_the_backfill(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026")
    export = world.create()
    world.call("POST", export, "pause/", {})
    world.advance(hours=10)
    world.service.admin("PUT", "settings", {"first_data_at": "2026-10-20T16:20:00Z"})
    assert open_gaps(world) == 10
    assert ends(filled(world, ClosedGaps(), wait=True)) == [("20 10:00", "20 20:00", "completed")]
    assert open_gaps(world) == 0
    world.service.admin("PUT", "settings", {"first_data_at": "never"})
    world.advance(hours=3)
    assert open_gaps(world) == 3
    assert ends(filled(world, SincePause(), wait=True))[0][2] == "empty"
    assert open_gaps(world) == 0


def test_trap_15_47_a_server_of_2025_refuses_a_range_without_data(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2025")
    world.create()
    world.advance(hours=10)
    world.service.admin("PUT", "settings", {"first_data_at": "never"})
    (end,) = filled(world, Span("2026-10-01T00:00Z", "2026-10-02T00:00Z")).ends
    assert end.state.value == "empty"
    assert "no data" in (end.detail or "")


def test_trap_15_48_a_completed_backfill_with_failed_runs_is_reported(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    world.outcomes({"match": {"backfill": True, "times": 2}, "status": "Failed", "error": "Full."})
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"), wait=True)
    assert [end.state.value for end in result.ends] == ["partly"]
    assert "2 of 5 runs did not complete (Failed: Full.)" in (result.ends[0].detail or "")


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_trap_15_59_the_row_of_a_moved_start_is_recognised(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, dialect)
    export = world.create()
    world.advance(hours=5)
    world.service.admin("PUT", "settings", {"first_data_at": "2026-10-19T03:00:00Z"})
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"), wait=True)
    (row,) = world.call("GET", export, "backfills/")["results"]
    assert [(end.state.value, end.id) for end in result.ends] == [("completed", row["id"])]


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_trap_15_59_a_lost_answer_is_looked_for_and_never_repeated(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, dialect)
    world.service.admin("PUT", "settings", {"backfill_row_delay_seconds": 100})
    rule = {"match": {"method": "POST", "path": "*/backfills/"}, "fault": "drop", "when": "after"}
    world.service.admin("PUT", "faults", [rule])
    world.service.clear_requests()
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"), wait=True)
    assert ends(result) == [("19 00:00", "19 05:00", "completed")]
    assert posts(world) == 1
    assert sum(world.waits) < 400


@pytest.mark.parametrize(("dialect", "path"), [("interface", "backfill"), ("2026", "backfills")])
def test_trap_15_60_an_outcome_that_stays_unknown_is_reported_and_not_repeated(
    dialect: str, path: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, dialect)
    rule = {"match": {"method": "POST", "path": f"*/{path}/"}, "fault": "drop", "when": "before"}
    world.service.admin("PUT", "faults", [rule])
    world.service.clear_requests()
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"))
    assert [end.state.value for end in result.ends] == ["unknown"]
    assert posts(world) == 1


def test_fidelity_f4_a_search_after_an_error_of_the_service_ends_sooner(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    rule = {"match": {"method": "POST", "path": "*/backfills/"}, "fault": "error", "status": 500}
    world.service.admin("PUT", "faults", [rule])
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"))
    assert [end.state.value for end in result.ends] == ["unknown"]
    assert sum(world.waits) <= 30


def test_trap_15_60_a_row_that_is_not_listed_yet_is_waited_for(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    world.service.admin("PUT", "settings", {"backfill_row_delay_seconds": 90})
    world.service.clear_requests()
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T03:00Z"), wait=True)
    assert ends(result) == [("19 00:00", "19 03:00", "completed")]
    assert posts(world) == 1


def test_a_backfill_that_runs_already_is_not_started_again(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    given = Span("2026-10-19T00:00Z", "2026-10-19T05:00Z")
    assert ends(filled(world, given)) == [("19 00:00", "19 05:00", "started")]
    world.service.clear_requests()
    assert ends(filled(world, given)) == [("19 00:00", "19 05:00", "running")]
    assert posts(world) == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trap_15_61_one_interval_is_tried_first_on_an_export_that_fails(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, dialect)
    world.outcomes({"match": {"name": "Lake"}, "status": "Failed", "error": "No access."})
    world.advance(hours=5)
    world.service.clear_requests()
    result = filled(world, ClosedGaps())
    assert [(end.planned.runs, end.state.value) for end in result.ends] == [
        (1, "failed"),
        (4, "skipped"),
    ]
    assert "last-run-failed" in [item.rule for item in result.plan.objects[0].consequences]
    assert posts(world) == 1
    world.outcomes()
    result = filled(world, ClosedGaps(), wait=True)
    assert [(end.planned.runs, end.state.value) for end in result.ends] == [
        (1, "completed"),
        (4, "completed"),
    ]
    assert open_gaps(world) == 0


def test_trap_15_62_intervals_over_a_billing_limit_are_left_out(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, "2025")
    world.outcomes({"match": {"name": "Lake", "times": 2}, "status": "FailedBilling"})
    world.advance(hours=5)
    result = filled(world, ClosedGaps())
    assert result.plan.backfills == ()
    assert [note.partition(":")[0] for note in result.plan.objects[0].notes] == [
        "2 intervals left out (billing)"
    ]


def test_too_many_running_backfills_stop_only_this_plan(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    world.service.admin("PUT", "settings", {"backfill_limit": 0})
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"))
    (end,) = result.ends
    assert end.state.value == "failed"
    assert end.hint == "wait until running backfills of this project finish"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trap_15_28_an_unaligned_range_is_aligned_and_the_plan_says_so(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, dialect)
    result = filled(world, Span("2026-10-19T10:10Z", "2026-10-19T12:20Z"), wait=True)
    assert ends(result) == [("19 10:00", "19 13:00", "completed")]
    (note,) = result.plan.objects[0].notes
    assert note == (
        "aligned to whole intervals: 2026-10-19T10:10:00Z to 2026-10-19T12:20:00Z becomes "
        "2026-10-19T10:00:00Z to 2026-10-19T13:00:00Z"
    )
    last = filled(world, Span("2026-10-20T13:00Z", "2026-10-20T15:20Z"), dry_run=True)
    assert [f"{item.end:%H:%M}" for item in last.plan.backfills] == ["15:00"]
    assert "has not ended" in last.plan.objects[0].notes[0]


@pytest.mark.parametrize(
    "words",
    [
        "Lake",
        "--gaps",
        "Lake --gaps --since-pause",
        "Lake --gaps --from 2026-10-19 --since 3d",
        "Lake --from 2026-10-19",
        "Lake --from 2026-10-19 --to 2026-10-18",
        "Lake --from 2026-10-19 --to 2030-10-18",
        "Lake --from soon --to 2026-10-18",
        "Lake --from 2026-10-20T15:10Z --to 2026-10-20T15:20Z",
        "Lake --since-pause",
        "nope --gaps",
    ],
)
def test_an_invalid_range_sends_nothing(
    words: str, service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    world.service.clear_requests()
    environ = world.service.environ()
    ran = reconciler("backfill", *words.split(), "--auto-approve", "-C", tmp_path, environ=environ)
    assert ran.code == 64, ran.err
    assert posts(world) == 0


def test_without_an_approval_nothing_is_sent(service_of: StartService, tmp_path: Path) -> None:
    world = after_five_hours(service_of, tmp_path)
    wanted = Span("2026-10-19", "2026-10-20")
    world.service.clear_requests()
    with pytest.raises(ReconcilerError, match="not approved"):
        world.run(lambda it: backfill(it, ("Lake",), wanted, approve=refuse))
    assert posts(world) == 0
    for first, message in (("2026-10-19", "no terminal"), ("2026-10-20", "empty time range")):
        wanted = Span(first, "2026-10-20")
        with pytest.raises(BadUsage, match=message):  # X9
            world.run(lambda it, wanted=wanted: backfill(it, ("Lake",), wanted))
    assert posts(world) == 0


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_running_backfills_are_cancelled(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, dialect)
    export = world.create()
    world.advance(hours=5)
    filled(world, Span("2026-10-01", "2026-10-10"))
    ids = world.run(lambda it: cancel_backfills(it, "Lake"))
    (row,) = world.call("GET", export, "backfills/")["results"]
    assert (ids, row["status"]) == ((row["id"],), "Cancelled")
    assert world.run(lambda it: cancel_backfills(it, "Lake")) == ()


def test_the_text_names_ranges_runs_rows_and_remarks(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    world.outcomes(
        {"match": {"name": "Lake", "times": 3}, "status": "Failed", "error": "No\x1b[1m."}
    )
    world.advance(hours=3)
    result = filled(world, ClosedGaps(), dry_run=True)
    text = written("backfills", "text", result.plan)
    assert "2026-10-20T15:00:00Z to 2026-10-20T16:00:00Z  1 run  tried first" in text
    assert "2026-10-20T16:00:00Z to 2026-10-20T18:00:00Z  2 runs" in text
    assert "last-run-failed" in text
    assert "Plan: 2 backfills, 3 runs, about 3 k rows." in text
    ended = ends_as_text(filled(world, ClosedGaps()).report.objects, DEFAULTS, "default")
    assert "completed 2026-10-20T15:00:00Z" in ended
    assert "\x1b" not in text + ended


def test_a_stop_while_waiting_leaves_the_backfill_running(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026")
    export = world.create()
    world.advance(hours=5)

    def stopping(workspace: Workspace) -> Workspace:
        runtime = workspace.runtime

        def listen(event: Event) -> None:
            if isinstance(event, Waiting) and "of 216 runs" in event.reason:
                runtime.stop.request()

        return replace(workspace, runtime=replace(runtime, listen=listen))

    wanted = Span("2026-10-01", "2026-10-10")
    result = world.run(
        lambda it: backfill(stopping(it), ("Lake",), wanted, auto_approve=True, wait=True)
    )
    (end,) = result.ends
    assert end.state.value == "started"
    assert (
        "it goes on, cancel it with: reconciler backfill --cancel " in f"{end.detail}, {end.hint}"
    )
    (row,) = world.call("GET", export, "backfills/")["results"]
    assert (row["id"], row["status"]) == (end.id, "Running")


def test_a_backfill_is_reported_if_a_stop_hides_its_row(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, "2025")
    wanted = Span("2026-10-19T00:00Z", "2026-10-19T05:00Z")

    def stopping(workspace: Workspace) -> Workspace:
        runtime = workspace.runtime

        def listen(event: Event) -> None:
            if isinstance(event, Sent) and event.method == "POST":
                runtime.stop.request()

        return replace(workspace, runtime=replace(runtime, listen=listen))

    result = world.run(lambda it: backfill(stopping(it), ("Lake",), wanted, auto_approve=True))
    assert ends(result) == [("19 00:00", "19 05:00", "started")]


def test_a_backfill_is_reported_if_its_row_cannot_be_read(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path, "2025")
    match = {"method": "GET", "path": "*/backfills/", "from": 2}
    world.service.admin("PUT", "faults", [{"match": match, "fault": "body", "value": []}])
    result = filled(world, Span("2026-10-19T00:00Z", "2026-10-19T05:00Z"))
    assert ends(result) == [("19 00:00", "19 05:00", "started")]


def test_the_audit_log_has_the_request(service_of: StartService, tmp_path: Path) -> None:
    world = after_five_hours(service_of, tmp_path)
    log = tmp_path / "audit.jsonl"
    result = filled(world, Span("2026-10-19", "2026-10-20"), outputs=Outputs(log))
    (run,) = read_log(log.read_bytes()) or ()
    sent = [line for line in map(json.loads, log.read_bytes().splitlines()) if "status" in line]
    writes = [(line["method"], line["status"]) for line in sent if line["method"] != "GET"]
    assert writes == [("POST", 201)]
    assert run.exit_code == 0
    assert run.plan_id == result.plan.plan_id
    assert "1 backfill, 24 runs." in written(
        "audit", "text", audit_of(read_log(log.read_bytes()) or ())
    )


def test_the_audit_log_has_the_exit_code_of_a_backfill_that_failed(
    service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    match = {"method": "POST", "path": "*/backfills/"}
    world.service.admin("PUT", "faults", [{"match": match, "fault": "error", "status": 400}])
    log = tmp_path / "audit.jsonl"
    result = filled(world, Span("2026-10-19", "2026-10-20"), outputs=Outputs(log))
    assert not result.report.complete
    (run,) = read_log(log.read_bytes()) or ()
    assert run.exit_code == 3


def test_a_cancel_whose_answer_is_lost_does_not_keep_the_others_running(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026")
    export = world.create()
    world.advance(hours=5)
    filled(world, Span("2026-10-01", "2026-10-05"))
    filled(world, Span("2026-10-05", "2026-10-10"))
    match = {"method": "POST", "path": "*/cancel/", "times": 1}
    world.service.admin("PUT", "faults", [{"match": match, "fault": "drop", "when": "after"}])
    ids = world.run(lambda it: cancel_backfills(it, "Lake"))
    rows = world.call("GET", export, "backfills/")["results"]
    assert {row["status"] for row in rows} == {"Cancelled"}
    assert set(ids) == {row["id"] for row in rows}


def test_a_backfill_that_ended_meanwhile_does_not_keep_the_others_running(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026")
    export = world.create()
    world.advance(hours=5)
    (first,) = filled(world, Span("2026-10-01", "2026-10-05")).ends
    (second,) = filled(world, Span("2026-10-05", "2026-10-10")).ends

    def meanwhile() -> None:
        world.call("POST", export, f"backfills/{second.id}/cancel/", {})

    ids = world.run(lambda it: cancel_backfills(it, "Lake", begin=meanwhile))
    assert ids == (first.id,)


@pytest.mark.parametrize("fault", [{"fault": "drop"}, {"fault": "error", "status": 500}])
def test_the_audit_of_an_unknown_backfill_says_what_to_look_at(
    fault: dict[str, Any], service_of: StartService, tmp_path: Path
) -> None:
    world = after_five_hours(service_of, tmp_path)
    match = {"method": "POST", "path": "*/backfills/"}
    world.service.admin("PUT", "faults", [{"match": match, "when": "before", **fault}])
    log = tmp_path / "audit.jsonl"
    filled(world, Span("2026-10-19", "2026-10-20"), outputs=Outputs(log))
    result = audit_of(read_log(log.read_bytes()) or ())
    text = written("audit", "text", result)
    assert exit_code_of_run(result.shown) == 3
    assert "Look at the backfills and runs before you start a backfill again." in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_apply_p1_backfill_of_all_failed_closes_failures_only_of_every_export(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    """A pause and missing runs stay; a project can be selected; a second command finds nothing."""
    world = start(service_of, tmp_path, dialect)
    for name in ("Lake", "Pond", "Well"):
        world.create(name)
    paused = world.create("Ditch")
    world.call("POST", paused, "pause/", {})
    rules = [{"match": {"name": name, "times": 2}, "status": "Failed"} for name in ("Lake", "Pond")]
    world.outcomes(*rules)
    world.advance(hours=6)
    assert open_gaps(world) == 4 + 6
    failures = ClosedGaps(failed=True)
    world.service.clear_requests()
    with pytest.raises(BadUsage, match="Moor"):
        filled(world, failures, "*", projects=("Moor",))
    result = filled(world, failures, "*", wait=True)
    assert sorted(item.name for item in result.report.objects) == ["Lake", "Pond"]
    assert ends(result) == [("20 10:00", "20 12:00", "completed")] * 2
    assert posts(world) == 2
    assert open_gaps(world) == 6
    assert filled(world, failures, "*").plan.backfills == ()
    assert posts(world) == 2


def test_apply_p1_the_command_asks_once_for_all_failed(
    service_of: StartService, tmp_path: Path
) -> None:
    world = start(service_of, tmp_path, "2026")
    for name in ("Lake", "Pond"):
        world.create(name)
    rules = [{"match": {"name": name, "times": 2}, "status": "Failed"} for name in ("Lake", "Pond")]
    world.outcomes(*rules)
    world.advance(hours=6)
    words = ("backfill", "*", "--failed", "-C", tmp_path)
    ran = reconciler(*words, "--dry-run", environ=world.service.environ())
    assert (ran.code, "Plan: 2 backfills of 2 exports, 4 runs" in ran.out) == (0, True), ran.out
    assert posts(world) == 0
    ran = reconciler(*words, "--auto-approve", environ=world.service.environ())
    assert (ran.code, ran.out.count("  started ")) == (0, 2), ran.out
    assert posts(world) == 2
