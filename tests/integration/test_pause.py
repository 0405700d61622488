"""`pause` and `unpause`: a plan of one action, applied, verified and recorded like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.commands.apply.execution import Screen
from reconciler.commands.pause.toggling import pause
from reconciler.commands.plan import plan
from reconciler.commands.sending import Applied, Outputs
from reconciler.commands.session import PlanResult
from reconciler.model.kind import Action
from reconciler.model.plan import Plan
from reconciler.model.settings import PlanOptions
from reconciler.render.plan_text import plan_as_text
from tests.support.cli import reconciler, write
from tests.support.simulated import Begin, Simulated

FILES = {
    "reconciler.yaml": "version: 1\n",
    "a.yaml": """\
# Exports of the shop.
batch_exports:
  lake:
    name: Lake   # hourly
    project: {id: 1}
    interval: hour
    destination: {type: NoOp, config: {}}
    paused: false  # runs
""",
}


@pytest.fixture
def begin(begin: Begin) -> Begin:
    """Return a function that starts a service with exports, and a workspace with `Lake`."""

    def with_files(dialect: str, *names: str, files: Mapping[str, str] | None = None) -> Simulated:
        world = begin(dialect)
        write(world.workspace.folder, {**FILES, **(files or {})})
        for name in names:
            world.create(name)
        world.service.clear_requests()
        return world

    return with_files


def toggled(world: Simulated, action: Action, *names: str, **options: Any) -> Applied:
    return world.run(lambda it: pause(it, names, action, auto_approve=True, **options))


def writes(world: Simulated) -> list[str]:
    return [
        f"{request['method']} {request['path'].rpartition('batch_exports/')[2]}"
        for request in world.service.requests()
        if request["method"] != "GET"
    ]


def test_the_plan_says_what_the_next_apply_does(begin: Begin) -> None:
    pond = FILES["a.yaml"].replace("lake:", "pond:").replace("Lake ", "Pond ")
    pond = pond.replace("    paused: false  # runs\n", "")
    world = begin("2026", "Lake", "Pond", "Other", files={"b.yaml": pond})
    shown: list[PlanResult] = []
    toggled(world, Action.PAUSE, "*", screen=Screen(shown.append))
    text = " ".join(plan_as_text(shown[0].plan).split())
    assert "the configuration sets `paused: false` (a.yaml:8:13): the next apply reverts" in text
    assert "3 to pause" in text
    planned = world.run(lambda it: plan(it, PlanOptions(no_inventory=True))).plan
    assert [change.action for change in planned.effective] == [Action.UNPAUSE]


PLAIN, DENY = FILES["reconciler.yaml"], "deny: [runs-missed-while-paused]"
POLICY = f"version: 1\npolicy:\n  ignore: ['Other']\n  {DENY}\n"
IGNORE = "version: 1\npolicy: {ignore: ['Other']}\n"
TWO = f"version: 1\ndefault: a\nenvironments:\n  a: {{policy: {{{DENY}}}}}\n  b: {{}}\n"


@pytest.mark.parametrize(
    ("settings", "words", "code", "message"),
    [
        pytest.param(PLAIN, "lake", 64, "pass --auto-approve", id="no approval"),
        pytest.param(PLAIN, "lake --reason x", 64, "pass --log-file FILE", id="a reason"),
        pytest.param(PLAIN, "lake -y --log-file -", 64, "use --format json", id="log on stdout"),
        pytest.param(PLAIN, "nope -y", 64, "nothing matches 'nope'", id="nothing"),
        pytest.param(PLAIN, "-y", 64, "pass NAME, --project or --destination", id="no name"),
        pytest.param(POLICY, "lake -y", 5, "refused by policy", id="denied"),
        pytest.param(POLICY, "Other -y", 5, "refused by policy", id="ignored"),
        pytest.param(IGNORE, "Other -y", 5, "refused by policy", id="ignored_only"),
        pytest.param(TWO, "--destination NoOp -y", 5, "refused by policy", id="m7_environment_a"),
        pytest.param(TWO, "--destination NoOp --dry-run -e b", 0, "", id="m7_environment_b"),
    ],
)
def test_refusals(settings: str, words: str, code: int, message: str, begin: Begin) -> None:
    world = begin("2026", "Lake", "Other", files={"reconciler.yaml": settings})
    ended = world.ran("pause", *words.split(), code=code)
    assert message in ended.err
    assert writes(world) == []
    if settings == IGNORE:
        assert "`policy.ignore` [ignore]\n  hint: narrow the glob in `policy.ignore`\n" in ended.out
        end = (
            "No changes (0 resources).\n      Refused by 1 rule: ignore. Nothing will be applied.\n"
        )
        assert ended.out.endswith(end)
    if code == 5:
        assert "--exclude" not in ended.out
    if settings == TWO:
        assert "‖ batch_export." in ended.out


def test_the_reason_is_in_the_audit_log(begin: Begin) -> None:
    world = begin("2026", "Lake")
    log = world.workspace.folder / "audit.jsonl"
    reason = f"warehouse \x1b[1mmigration; key {world.service.api_key}"
    toggled(world, Action.PAUSE, "lake", outputs=Outputs(log, reason=reason))
    first = json.loads(log.read_text().splitlines()[0])
    assert first["started_by"]["reason"] == "warehouse \x1b[1mmigration; key ***"
    shown = reconciler("show", log)
    assert "Reason       warehouse \\x1b[1mmigration; key ***" in shown.out


def test_an_export_that_was_deleted_meanwhile_is_a_failure(begin: Begin) -> None:
    world = begin("2026")
    lake = world.create()

    async def meanwhile(_: Plan) -> bool:
        world.call("DELETE", lake)
        return True

    paused = world.run(lambda it: pause(it, ["lake"], approve=meanwhile))
    assert paused.ended.exit_code == 3


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_trap_15_67_unpause_names_the_backfill_of_the_pause(dialect: str, begin: Begin) -> None:
    world = begin(dialect)
    world.service.admin("POST", "reset")
    world.service.admin("PUT", "settings", {"auto_pause": False})
    half_a_day_ago = world.now() - timedelta(hours=12)
    world.service.admin("POST", "clock", {"set": half_a_day_ago.isoformat()})
    world.outcomes()
    world.live(world.create(), "130m", "pause", "590m")
    world.service.clear_requests()
    words = ("backfill", "batch_export.lake", "--since-pause")
    unpaused = world.ran("unpause", "lake", "--auto-approve")
    command = " ".join([*words, f"--workspace={world.workspace.folder}"])
    assert f"hint: export what the pause skipped:\n  reconciler {command}\n" in unpaused.err
    world.ran(*words, "--auto-approve")
    unpause, backfill = (item for item in world.service.requests() if item["method"] == "POST")
    assert (unpause["path"].split("/")[-2], unpause["body"] or None) == ("unpause", None)
    assert "/backfills/" in backfill["path"]
    first, last = map(datetime.fromisoformat, map(backfill["body"].get, ("start_at", "end_at")))
    assert (first.minute, last.minute) == (0, 0)
    assert timedelta(hours=9) <= last - first <= timedelta(hours=11)


def test_issue_46_a_pause_that_skipped_nothing_has_no_backfill(begin: Begin) -> None:
    world = begin("2026")
    world.service.admin("POST", "reset")
    # A time zone where it is noon: no day ends meanwhile.
    lake = world.create(interval="day", timezone=f"Etc/GMT{world.now().hour - 12:+}")
    assert "1 to pause" in world.ran("pause", lake, "-y").out
    world.service.clear_requests()
    lines = world.ran("unpause", "lake", "-y", "--format", "json").out.splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert (events[0], events[-1]) == ("planned", "ended")
    early = world.ran("backfill", "lake", "--since-pause", "-y", code=64)
    assert "no interval has ended since the last pause" in early.err
    assert writes(world) == [f"POST {lake}/unpause/"]
    again = world.ran("unpause", "lake", "-y")
    assert again.out == "already unpaused: batch_export.lake\n"
    assert "hint:" not in again.err


TABLE = {"user": "u", "password": "p", "table_name": "events"}
DWH = {"account": "acme-eu1", "database": "DWH", "schema": "PUBLIC", "warehouse": "WH"}
DB = {"host": "db.acme.example", "port": 5432, "database": "dwh", "schema": "public"}
KEYS = {"aws_access_key_id": "AKIAX", "aws_secret_access_key": "x"}
LAKE = {"bucket_name": "acme-lake", "region": "eu-central-1", "prefix": "web/"}
TO = {"Snowflake": DWH | TABLE, "Postgres": DB | TABLE, "S3": LAKE | KEYS}


@pytest.fixture
def warehouses(begin: Begin) -> Simulated:
    """Return a service with exports to Snowflake, Postgres, twice S3, and nowhere."""
    world = begin("2025", "Nowhere")
    for name, tag in (*((tag, tag) for tag in TO), ("Dwh", "S3")):
        world.create(name, destination={"type": tag, "config": TO[tag]})
    world.service.clear_requests()
    return world


@pytest.mark.parametrize(
    ("words", "paused"),
    [
        (["--destination", "snowflake"], {"Snowflake"}),
        (["--destination", "ACME-EU1"], {"Snowflake"}),
        (["--destination", "s3://acme*"], {"S3", "Dwh"}),
        (["--destination", "s3://acme-lake/web/*"], {"S3", "Dwh"}),
        (["--destination", "*.acme.example*", "--destination", "NoOp"], {"Postgres", "Nowhere"}),
        (["Dwh", "Snowflake", "--destination", "s3"], {"Dwh"}),
        (["--project", "1", "--destination", "db.acme.example"], {"Postgres"}),
        (["S*"], {"S3", "Snowflake"}),
        (["--project", "1"], {"Snowflake", "Postgres", "S3", "Dwh", "Nowhere"}),
    ],
)
def test_m7_exports_by_where_they_send(
    words: list[str], paused: set[str], warehouses: Simulated
) -> None:
    def states() -> set[str]:
        exports = warehouses.service.exports()
        return {name for name, export in exports.items() if export["paused"]}

    for command, before in (("pause", set[str]()), ("unpause", paused)):
        planned = warehouses.ran(command, *words, "--dry-run")
        assert f"{len(paused)} to {command}" in planned.out
        assert states() == before
        ended = warehouses.ran(command, *words, "-y")
        assert states() == paused - before
    [hint] = [line for line in ended.err.splitlines() if line.startswith("  reconciler backfill ")]
    assert hint.count("batch_export.") == len(paused)


def test_m7_a_destination_that_matches_nothing_lists_those_there_are(warehouses: Simulated) -> None:
    words = ("--destination", "redshift", "--destination", "snowflake", "-y")
    error = warehouses.ran("pause", *words, code=64).err
    assert "no selected export sends to 'redshift' (--destination)" in error
    ways = ("NoOp (1 export)", "Postgres db.acme.example:5432 (1 export)", "S3 s3://acme")
    assert f"there are: {', '.join(ways)}" in error
    assert writes(warehouses) == []
    config = TO["S3"] | {"endpoint_url": "https://s3.example/in?token=hunter2-hunter2"}
    warehouses.create("Keyed", destination={"type": "S3", "config": config})
    words = ("pause", "Nowhere", "Keyed", "--destination", "postgres", "-y")
    ways = "NoOp (1 export), S3 s3://acme-lake at https://s3.example/in?token=*** (1 export)\n"
    assert f"there are: {ways}" in warehouses.ran(*words, code=64).err
