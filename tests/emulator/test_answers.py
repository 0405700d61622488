"""The fields of answers, and queries with values that nobody means."""

from __future__ import annotations

from itertools import product

from tests.emulator.facts import Api, fact
from tests.emulator.operations import no_op, of, runs

_NAMES = (
    "limit offset cursor ordering status after before start end level level_filter search "
    "instance_id kind destination scope scopes item_id user page_size"
)
_VALUES = ("-1", "x", "%00", "9" * 30)


@fact("1.1", "an export shows these fields and no others")
def test_the_fields_of_an_export(api: Api) -> None:
    common = (
        "id team_id name model destination interval paused created_at last_updated_at "
        "last_paused_at start_at end_at latest_runs schema"
    )
    own = {
        "interface": "sql_query",
        "2025": "filters",
        "2026": "filters hogql_query hogql_modifiers timezone offset_day offset_hour primary_key "
        "version_key incremental_mode",
    }
    export = api.get(api.create())
    assert set(export) == set(f"{common} {own[api.dialect]}".split())


@fact("2", "a run shows these fields and no others")
def test_the_fields_of_a_run(api: Api) -> None:
    common = (
        "id status records_completed latest_error data_interval_start data_interval_end cursor "
        "created_at finished_at last_updated_at records_total_count batch_export"
    )
    own = {
        "interface": "",
        "2025": "backfill bytes_exported",
        "2026": "backfill bytes_exported records_failed batch_export_on_demand",
    }
    export = api.create(**no_op())
    api.emulator.advance(hours=1)
    assert set(runs(api, export)[0]) == set(f"{common} {own[api.dialect]}".split())


@fact("5", "no value of a query makes the server fail without a rule")
def test_odd_queries(api: Api) -> None:
    export = api.create(**no_op())
    api.emulator.advance(hours=1)
    run = of(api, export, f"runs/{runs(api, export)[0]['id']}/")
    paths = [of(api, export, path) for path in ("runs/", "backfills/", "logs/")]
    paths += [
        run,
        f"{run}logs/",
        api.project,
        f"{api.project}test/",
        f"{api.organization}projects/",
    ]
    paths += [f"/api/projects/1/{path}/" for path in ("activity_log", "integrations")]
    for path in paths:
        for name, value in product(_NAMES.split(), _VALUES):
            api.call("GET", f"{path}?{name}={value}")
    assert [request for request in api.emulator.requests() if request["error"]] == []
