"""`runs` and `logs` in simulated time, on each server."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from reconciler.commands.logs import logs, read_logs
from reconciler.commands.runs import runs
from reconciler.commands.targets import opened
from reconciler.commands.workspace import Workspace
from reconciler.errors import BadUsage, InvalidResponse, NotFound, ReconcilerError
from reconciler.model.public import as_json
from reconciler.model.run import LogEntry, LogReport, Matched, RunReport
from reconciler.service.operations import NotOffered
from tests.support.cli import write
from tests.support.emulator import DIALECTS
from tests.support.reports import written
from tests.support.simulated import NO_START, Begin, Simulated

WITH_LOGS = ("interface", "2026")


@pytest.fixture
def begin(begin: Begin) -> Begin:
    return partial(begin, auto_pause=False)


@pytest.fixture
def world(begin: Begin) -> Simulated:
    """Return a new service with the hourly export `Lake`."""
    world = begin("2026")
    world.create()
    return world


def runs_of(world: Simulated, **options: Any) -> RunReport:
    names = options.pop("names", ["Lake"])
    return world.run(lambda it: runs(it, names, **options)).report


def logs_of(world: Simulated, **options: Any) -> LogReport:
    return world.run(lambda it: logs(it, "Lake", **options))


def ends(report: RunReport) -> list[str]:
    return [f"{run.end:%d %H:%M} {run.status}" for run in report.runs]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_newest_runs_of_any_age_are_listed(dialect: str, begin: Begin) -> None:
    world = begin(dialect)
    failed = {"match": {"nth": 2}, "status": "Failed", "error": "Access \x1b[31mdenied."}
    world.live(world.create(), failed, "3h", "9d")
    old = runs_of(world, limit=None)
    assert ends(old)[-3:] == ["20 13:00 Completed", "20 12:00 Failed", "20 11:00 Completed"]
    assert (len(old.runs), old.more) == (3 + 9 * 24, False)
    # Trap 15.63: totals and instances are not used.
    newest = json.loads(as_json(old))["runs"][0]
    assert ("records_total_count" in newest, newest["records"]) == (False, 1000)
    newest = runs_of(world)
    assert (newest.runs, newest.more) == (old.runs[:20], True)
    assert ends(runs_of(world, statuses=("Failed",))) == ["20 12:00 Failed"]
    second = old.runs[-2]
    one = runs_of(world, run=second.id)
    assert one.runs == (second,)
    assert runs_of(world, run=second.id, statuses=("Completed",)).runs == (second,)
    assert "Failed" in written("runs", "text", one)
    assert "Access \\x1b[31mdenied." in written("runs", "text", one)
    with pytest.raises(NotFound, match="has no run"):
        runs_of(world, run="00000000-0000-4000-8000-000000000000")
    with pytest.raises(BadUsage):
        runs_of(world, run="../../x")
    if dialect == "2025":
        with pytest.raises(NotOffered, match="refuses it to API keys") as refused:
            logs_of(world, run=second.id)
        assert "?tab=logs" in str(refused.value.hint)
    else:
        logged = logs_of(world, run=second.id)
        if dialect == "2026":
            with pytest.raises(NotFound):
                runs_of(world, run=logged.entries[0].instance)
        assert [entry.timestamp.hour for entry in logged.entries] == [12] * 4
        assert len(logs_of(world, run=second.id, level="ERROR").entries) == 1
        assert len(logs_of(world, run=old.runs[-1].id).entries) == 3
        assert logged.matched is (Matched.BY_TIME if dialect == "2026" else Matched.BY_SERVICE)
        by_time = "some may be of other runs" in written("logs", "text", logged)
        assert by_time is (dialect == "2026")


def three(begin: Begin, dialect: str = "2026") -> Simulated:
    """Return a service with three exports that ran for five hours; Pond's second run failed."""
    world = begin(dialect)
    world.create()
    for name in ("Pond", "Sea"):
        world.create(name)
    world.outcomes(
        {"match": {"name": "Pond", "nth": 2}, "status": "Failed", "error": "Denied."},
        {"match": {"name": "Lake", "nth": 4}, "status": "Failed", "error": "Full."},
    )
    world.advance(hours=5)
    return world


@pytest.mark.parametrize("dialect", DIALECTS)
def test_m7_failed_runs_of_all_exports_are_one_list(dialect: str, begin: Begin) -> None:
    """M7: names, globs and projects select, and the limit counts the runs of all."""
    world = three(begin, dialect)
    failed = runs_of(world, names=[], statuses=("Failed",), limit=None)
    assert [(run.error, f"{run.end:%H}") for run in failed.runs] == [
        ("Full.", "14"),
        ("Denied.", "12"),
    ]
    assert not failed.more
    every = runs_of(world, names=["*"], limit=None).runs
    assert [run.created_at for run in every] == sorted(
        (run.created_at for run in every if run.created_at), reverse=True
    )
    assert len(every) == 15
    world.service.clear_requests()
    newest = runs_of(world, names=["Pond", "S*"], projects=["1"], limit=4)
    assert newest.more
    assert newest.runs == tuple(r for r in every if r.address != failed.runs[0].address)[:4]
    reads = [r for r in world.service.requests() if r["path"].endswith("/runs/")]
    assert len(reads) == 2, "one page of each export"


def test_m7_each_run_of_several_exports_names_its_export_in_every_format(begin: Begin) -> None:
    """M7: one schema for one export and for several."""
    world = three(begin)
    text = world.ran("runs", "*", "--status", "Failed").out
    head, lake, full, pond, denied, *_ = text.splitlines()[2:]
    assert head.split()[:2] == ["export", "interval"]
    assert lake.startswith('  "Lake"  2026-10-20 13:00 to 14:00  Failed')
    assert pond.startswith('  "Pond"  2026-10-20 11:00 to 12:00  Failed')
    assert (full.strip(), denied.strip()) == ("Full.", "Denied.")
    table = world.ran("runs", "--status", "Failed", "--format", "markdown").out
    assert table.startswith("### Runs of 3 exports")
    assert ("| export | interval" in table, '| "Pond" |' in table) == (True, True)
    for words, count in ((("Pond",), 1), (("--project", "1"), 3)):
        content = json.loads(world.ran("runs", *words, "--format", "json").out)
        known = {item["address"]: item["name"] for item in content["exports"]}
        assert len(known) == len({known[run["address"]] for run in content["runs"]}) == count
    one = world.ran("runs", "Sea", "--links", "--status", "completed", "--limit", "1").out
    assert one.count('"Sea"') == 1, "in the heading only"
    assert "the newest 1 run" in one
    id_ = world.service.exports()["Sea"]["id"]
    assert f"/pipeline/batch-exports/{id_}?tab=runs" in one
    words = "logs Sea --level info --search finished --from 2026-10-20 --format markdown"
    log = world.ran(*words.split()).out
    assert (log.startswith("### Log of "), log.count("finished successfully")) == (True, 5)


def test_m7_an_export_that_fails_to_be_read_does_not_hide_the_others(begin: Begin) -> None:
    """M7: its error is in the report and in the exit code; if all fail, it is the error."""
    world = three(begin)
    pond = next(item.address for item in runs_of(world, names=["Pond"]).exports)
    world.service.fail(404, path=f"*/{pond.key.removeprefix('id:')}/runs/")
    report = runs_of(world, names=[])
    assert len(report.runs) == 10
    assert [item.name for item in report.exports if item.error] == ["Pond"]
    for form in ("text", "markdown"):
        assert "cannot be read" in written("runs", form, report)
    content = json.loads(world.ran("runs", "*", "--format", "json", code=1).out)
    assert [item["error"] is None for item in content["exports"]].count(False) == 1
    assert len(content["runs"]) == 10
    with pytest.raises(NotFound):
        runs_of(world, names=["P*"])
    text = "batch_exports: {later: {name: Later, project: {id: 1}, interval: hour,"
    write(
        world.workspace.folder,
        {"b.yaml": f"{text} destination: {{type: NoOp, config: {{}}}}}}}}\n"},
    )
    with pytest.raises(ReconcilerError, match="later does not exist yet"):
        runs_of(world, names=["later"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_windows_are_of_the_creation(dialect: str, begin: Begin) -> None:
    world = begin(dialect)
    export = world.create(**({"destination": NO_START} if dialect == "2025" else {}))
    world.advance(hours=5)
    now = world.now()
    later = runs_of(world, first=now.replace(hour=13, minute=0), last=now.replace(minute=5))
    assert ends(later) == ["20 15:00 Completed", "20 14:00 Completed", "20 13:00 Completed"]
    if dialect == "interface":
        return
    body = {"start_at": "2026-10-20T09:00:00Z", "end_at": "2026-10-20T10:00:00Z"}
    world.call("POST", export, "backfills/", body)
    world.advance(minutes=20)
    assert ends(runs_of(world))[0] == "20 10:00 Completed"
    if dialect == "2025":  # Trap 15.51: a run without a start.
        world.call("POST", export, "backfills/", {**body, "start_at": None})
        world.advance(hours=1)
        assert None in [run.start for run in runs_of(world).runs]
        assert "up to 2026-10-20 10:00" in written("runs", "text", runs_of(world))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trap_15_50_a_run_of_an_exported_interval_is_marked(dialect: str, begin: Begin) -> None:
    world = begin(dialect)
    rows = {"match": {"nth": 1}, "rows": [{"status": "Failed"}, {"status": "Completed"}]}
    world.outcomes(rows, {"match": {"nth": 1}, "status": "Failed"})
    world.live(world.create(), "2h")
    report = runs_of(world)
    assert len(report.settled) == 1
    for form in ("text", "markdown"):
        assert written("runs", form, report).count("exported by another run") == 1


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_trap_15_62_a_run_that_billing_refused_has_ended(dialect: str, begin: Begin) -> None:
    world = begin(dialect)
    world.live(world.create(), {"match": {}, "status": "FailedBilling"}, "1h")
    report = runs_of(world)
    assert "until billing is settled" in " ".join(written("runs", "text", report).split())
    one = runs_of(world, run=report.runs[0].id)
    assert not one.runs[0].pending
    assert "ended      not yet" not in written("runs", "text", one)
    if dialect == "2026":
        entries = logs_of(world, run=report.runs[0].id).entries
        assert [entry.level for entry in entries] == ["WARNING"]


@pytest.mark.parametrize("dialect", WITH_LOGS)
def test_logs_are_read_by_level_text_and_time(dialect: str, begin: Begin) -> None:
    world = begin(dialect)
    failed = {"match": {"nth": 2}, "status": "Failed", "error": "Bad \x1b[2J##[x] `row`."}
    world.live(world.create(), failed, "3h")
    report = logs_of(world)
    times = [entry.timestamp for entry in report.entries]
    assert times == sorted(times)
    assert len(times) == 10  # Three of each run, and a mail about the failure.
    errors = logs_of(world, level="WARNING")
    assert [entry.level for entry in errors.entries] == ["ERROR"]
    assert len(logs_of(world, search="FINISHED").entries) == 2
    noon = world.now().replace(hour=12, minute=30)
    assert {entry.timestamp > noon for entry in logs_of(world, first=noon).entries} == {True}
    newest = logs_of(world, limit=2)
    assert (newest.entries, newest.more) == (report.entries[-2:], True)
    text, markdown = written("logs", "text", errors), written("logs", "markdown", errors)
    assert "\x1b" not in text + markdown
    assert "\\x1b[2J" in text
    assert json.loads(as_json(errors))["entries"][0]["level"] == "ERROR"


@pytest.mark.parametrize("dialect", WITH_LOGS)
def test_older_entries_are_read_completely_and_once(dialect: str, begin: Begin) -> None:
    """Also in small pages; the end and the middle of a run have one time."""
    world = begin(dialect)
    for name in ("Lake", "Pond"):
        world.create(name)
    world.outcomes({"match": {}, "status": "Completed", "seconds": 1})
    world.advance(hours=5)

    async def read(workspace: Workspace, page: int) -> list[LogEntry]:
        async with opened(workspace, "logs") as targets:
            calls = targets.calls(targets.one("Lake"))
            return [entry async for entry in read_logs(calls, {}, page=page)]

    whole = world.run(lambda it: read(it, 500))
    assert len(whole) == 15
    for page in (2, 3, 4, 7):
        paged = world.run(lambda it, page=page: read(it, page))
        assert sorted(map(str, paged)) == sorted(map(str, whole))


def test_a_page_of_entries_that_comes_again_is_an_error(world: Simulated) -> None:
    entry = {"timestamp": "2026-01-01T00:00:00Z", "level": "INFO", "message": "Starting"}
    rule = {"match": LOGS, "fault": "body", "value": {"results": [entry]}}
    world.service.admin("PUT", "faults", [rule])

    async def read(workspace: Workspace) -> list[LogEntry]:
        async with opened(workspace, "logs") as targets:
            calls = targets.calls(targets.one("Lake"))
            return [entry async for entry in read_logs(calls, {}, page=1)]

    with pytest.raises(InvalidResponse, match="does not end"):
        world.run(read)


RUNS, LOGS = {"path": "*/runs/"}, {"path": "*/logs/"}
BODIES: list[Any] = [
    {"results": [{"id": "a", "status": 5}], "next": None},
    {"results": [5], "next": None},
    {"results": [{"timestamp": "never"}]},
    [],
]
NO_SCOPE = {"status": 403, "detail": "API key missing required scope 'batch_export:read'"}


@pytest.mark.parametrize(
    ("match", "fault", "error", "message"),
    [
        *(
            (match, {"value": body}, InvalidResponse, None)
            for body in BODIES
            for match in (RUNS, LOGS)
        ),
        (RUNS, NO_SCOPE, ReconcilerError, "scope"),
        (RUNS, {"status": 404, "detail": "Not found."}, NotFound, "Not found"),
        # As a server of spring 2026.
        (LOGS, {"status": 403, "detail": "No key."}, NotOffered, "refuses logs to the API key"),
    ],
)
def test_answers_that_are_no_runs_or_entries_are_errors(
    match: Any, fault: Any, error: type[ReconcilerError], message: str | None, world: Simulated
) -> None:
    rule = {"match": match, "fault": "error" if "status" in fault else "body", **fault}
    world.service.admin("PUT", "faults", [rule])
    with pytest.raises(error, match=message) as refused:
        (runs_of if match is RUNS else logs_of)(world)
    assert ("?tab=logs" in str(refused.value.hint)) is (error is NotOffered)


@pytest.mark.parametrize(
    "words",
    [
        "runs Lake --since soon",
        "runs Lake --from 2026-10-02 --to 2026-10-01",
        "runs Lake --since 1d --from 2026-10-01",
        "runs Lake --status Bad",
        "logs Lake --level loud",
        "runs Nothing",
        "runs --run x",
        "runs Lake Pond --run x",
    ],
)
def test_options_that_exclude_each_other_are_usage_errors(words: str, begin: Begin) -> None:
    ended = begin("2026").ran(*words.split(), code=64)
    assert ("hint: write it like 90m, 6h, 7d or 2w" in ended.err) == ("soon" in words)
