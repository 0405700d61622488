"""Logs of exports and runs (service.md, 3 and 9).

tests/integration/test_runs_and_logs.py has their filters.
"""

from __future__ import annotations

from tests.emulator.facts import Api, fact, refused
from tests.emulator.operations import get, of, outcomes, runs


@fact("3", "logs are newest first, in two forms; 2025 refuses keys", rules=(27, 40))
def test_export_logs(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=4)
    answer = api.call("GET", of(api, export, "logs/"))
    if api.dialect == "2025":
        refused(answer, 403, "permission_denied")
        return
    entries = answer.json()["results"]
    assert entries[0]["timestamp"] >= entries[-1]["timestamp"]
    old = {"team_id", "batch_export_id", "run_id", "timestamp", "level", "message"}
    new = {"log_source_id", "instance_id", "timestamp", "level", "message"}
    assert set(entries[0]) == (old if api.dialect == "interface" else new)
    name = "level_filter" if api.dialect == "interface" else "level"
    debug = get(api, of(api, export, f"logs/?{name}=debug"))["results"]
    assert [entry["level"] for entry in debug] == ["DEBUG"] * 4


@fact("3", "the oldest logs have limit/offset pages", "interface")
def test_pages_of_the_oldest_logs(api: Api) -> None:
    outcomes(api, {"match": {}, "status": "Completed"})
    export = api.create()
    api.emulator.advance(hours=50)
    page = get(api, of(api, export, "logs/?limit=10&offset=10"))
    assert (page["count"], len(page["results"])) == (150, 10)


@fact("3", "the limit applies before the offset, so no offset reaches further", "2026", rules=(27,))
def test_pages_of_logs(api: Api) -> None:
    """The limit is at most 500."""
    export = api.create()
    api.emulator.advance(hours=40)
    path = of(api, export, "logs/")
    page = get(api, path)
    assert (page["count"], len(page["results"]), page["next"]) == (50, 50, None)
    assert get(api, f"{path}?limit=2&offset=2")["results"] == []
    assert get(api, f"{path}?limit=500")["count"] > 100
    oldest = page["results"][-1]["timestamp"]
    earlier = get(api, f"{path}?before={oldest}")["results"]
    assert earlier
    assert all(line["timestamp"] < oldest for line in earlier)
    refused(api.call("GET", f"{path}?limit=501"), 400, "max_value", "limit")


@fact("3", "logs of a run: all in the interface, 403 for keys in 2025, 500 in 2026", rules=(27,))
def test_run_logs(api: Api) -> None:
    export = api.create()
    api.emulator.advance(hours=2)
    run = runs(api, export)[0]["id"]
    answer = api.call("GET", of(api, export, f"runs/{run}/logs/"))
    if api.dialect == "2026":
        assert answer.status_code == 500
    elif api.dialect == "2025":
        detail = refused(answer, 403, "permission_denied")
        assert detail == "This action does not support personal API key access"
    else:
        assert {line["run_id"] for line in answer.json()["results"]} == {run}
