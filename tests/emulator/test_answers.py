"""The fields of answers."""

from __future__ import annotations

from tests.emulator.facts import Api, fact
from tests.emulator.operations import no_op, runs


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
