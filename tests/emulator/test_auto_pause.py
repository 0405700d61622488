"""The service pauses an export by itself (service.md, 14); the settings of time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import OLD, Api, fact
from tests.emulator.operations import (
    get,
    of,
    outcomes,
    runs,
    settings,
    statuses,
)

FAILS = {"match": {}, "status": "Failed"}


def fail(api: Api, times: int) -> None:
    outcomes(api, {"match": {"times": times}, "status": "Failed"})


@fact("14", "10 failures of the last 50 runs pause an export before 2026, in any order", *OLD)
def test_the_threshold_of_older_servers(api: Api) -> None:
    rules: list[dict[str, Any]] = [{"match": {"nth": nth}, "status": "Failed"} for nth in (1, 3, 5)]
    outcomes(api, *rules, {"match": {}, "status": "Completed"})
    export = api.create()
    for hours, paused in ((12, False), (6, False), (3, True)):
        api.emulator.advance(hours=hours)
        assert api.get(export)["paused"] is paused
        fail(api, 7)
    # The 19th run was the tenth to fail; no later tick made a run.
    assert statuses(api, export).count("Failed") == 10
    assert len(statuses(api, export)) == 19


@pytest.mark.parametrize(("interval", "days"), [("hour", 1), ("day", 4), ("week", 25)])
@fact("14", "3 failures of the last runs pause an export in 2026", "2026")
def test_the_threshold_of_2026(api: Api, interval: str, days: int) -> None:
    outcomes(api, FAILS)
    export = api.create(interval=interval)
    api.emulator.advance(days=days)
    paused = api.get(export)
    assert paused["paused"] is True
    failed = runs(api, export, "?after=-90d")
    assert len(failed) == 3
    assert paused["last_paused_at"] == failed[0]["finished_at"] == paused["last_updated_at"]


@fact("14", "hourly exports have a window of 24 runs in 2026", "2026")
def test_the_window_of_2026(api: Api) -> None:
    first = {"match": {"nth": 1}, "status": "Failed"}
    outcomes(api, first, {"match": {"times": 23}, "status": "Completed"}, FAILS)
    export = api.create()
    api.emulator.advance(hours=26, minutes=30)
    # Two of the last 24: the first failure is out of sight.
    assert statuses(api, export).count("Failed") == 3
    assert api.get(export)["paused"] is False
    api.emulator.advance(hours=1)
    assert api.get(export)["paused"] is True


@pytest.mark.parametrize("status", ["FailedBilling", "FailedRetryable", "Cancelled", "Failed"])
@fact("14", "only the status Failed counts, unless the pause is switched off")
def test_failures_that_do_not_count(api: Api, status: str) -> None:
    settings(api, auto_pause=status != "Failed")
    outcomes(api, {"match": {}, "status": status})
    export = api.create()
    api.emulator.advance(hours=60)
    assert api.get(export)["paused"] is False


@fact("14", "an automatic pause is in the log and the activity", "2026")
def test_traces_of_an_automatic_pause(api: Api) -> None:
    outcomes(api, FAILS)
    export = api.create()
    api.emulator.advance(hours=6)
    (line,) = get(api, of(api, export, "logs/?search=automatically"))["results"]
    assert line["level"] == "WARNING"
    assert line["message"].endswith(
        " all automated retries.The batch export can be unpaused after addressing any errors."
    )
    path = f"/api/projects/1/activity_log/?scope=BatchExport&item_id={export['id']}"
    entry = get(api, path)["results"][0]
    assert (entry["activity"], entry["user"], entry["is_system"]) == ("updated", None, True)
    assert entry["detail"]["changes"][0]["field"] == "enabled"
    assert entry["created_at"] == api.get(export)["last_paused_at"]
