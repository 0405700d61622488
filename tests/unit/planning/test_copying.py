"""The seed of a copy of the service, and the comparison of end states."""

from __future__ import annotations

from typing import Any

from reconciler.model.copied import PLACEHOLDER
from reconciler.model.dialect import Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.planning.copying import copy_of, end_state, sample
from reconciler.planning.rehearsal import different
from tests.support.worlds import KINDS, desired_of, export, planned, project


def live_of(*exports: tuple[str, dict[str, Any]]) -> Live:
    web = LiveObject("project", "1", "Web", {"id": 1, "name": "Web", "api_token": "phc_x"})
    inside = tuple(
        LiveObject("batch_export", f"e{number}", name, {"name": name, **body}, "1")
        for number, (name, body) in enumerate(exports)
    )
    return Live({"project": (web,), "batch_export": inside}, Dialect.V2026)


def seed_of(live: Live, *resources: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    copy = copy_of(planned(desired_of(*resources), live), live, KINDS)
    return dict(copy.seed), copy.assumed


def test_a_seed_has_ids_and_no_tokens_and_the_oldest_first() -> None:
    no_op = {"destination": {"type": "NoOp", "config": {}}}
    seed, assumed = seed_of(live_of(("New", no_op), ("Old", no_op)))
    (web,) = seed["organizations"][0]["projects"]
    assert web["id"] == 1
    assert "api_token" not in web
    assert [(item["id"], item["copied"]) for item in web["batch_exports"]] == [
        ("e1", True),
        ("e0", True),
    ]
    assert assumed == ()


def test_stored_secrets_are_placeholders_by_the_way_to_sign_in() -> None:
    config = {"account": "a", "authentication_type": "keypair"}
    nested = {"copy_inputs": {"authorization": "role", "bucket_credentials": {}}}
    live = live_of(
        ("Table", {"destination": {"type": "Snowflake", "config": config}}),
        ("Copy", {"destination": {"type": "Redshift", "config": nested}}),
    )
    seed, _ = seed_of(live)
    copied, table = seed["organizations"][0]["projects"][0]["batch_exports"]
    assert table["destination"]["config"] == {
        **config,
        "user": PLACEHOLDER,
        "private_key": PLACEHOLDER,
    }
    assert copied["destination"]["config"]["copy_inputs"] == {
        "authorization": "role",
        "bucket_credentials": {
            "aws_access_key_id": PLACEHOLDER,
            "aws_secret_access_key": PLACEHOLDER,
        },
    }


def test_integrations_are_those_of_live_exports_and_what_the_plan_needs_is_assumed() -> None:
    bucket = {"type": "AwsS3", "config": {"bucket_name": "b"}, "integration": 7}
    other = {"type": "BigQuery", "config": {"dataset_id": "d"}, "integration": 8}
    wrong = {"type": "Snowflake", "config": {"database": "d"}, "integration": 7}
    seed, assumed = seed_of(
        live_of(("Bucket", {"destination": bucket})),
        project("web", primary_dashboard=5),
        export("other", destination=other),
        export("wrong", destination=wrong),
    )
    assert seed["integrations"] == [
        {"id": 7, "kind": "aws-s3", "project": 1},
        {"id": 8, "kind": "google-cloud-service-account", "project": 1},
    ]
    assert seed["organizations"][0]["projects"][0]["dashboards"] == [5]
    assert assumed == ("dashboard 5", "integration 8")


def test_end_states_are_compared_without_ids() -> None:
    first = live_of(("A", {"interval": "hour"}), ("B", {"interval": "day"}))
    same = live_of(("B", {"interval": "day"}), ("A", {"interval": "hour"}))
    other = live_of(("A", {"interval": "hour"}), ("A", {"interval": "hour"}))
    expected = end_state(first, KINDS)
    assert different(expected, end_state(same, KINDS)) == ""
    assert different(expected, end_state(other, KINDS)) == (
        "missing: batch_export 'B'; extra: batch_export 'A'"
    )


def test_a_sample_is_spread_evenly_up_to_the_last_number() -> None:
    assert sample(3, 50) == [1, 2, 3]
    assert sample(100, 4) == [25, 50, 75, 100]
    assert sample(0, 50) == []
