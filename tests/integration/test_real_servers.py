"""What the service's own code returns, imported and managed (issue 31; service.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.values import MISSING
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler
from tests.support.declared import seed
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.importing import new_workspace, resources, run_import, run_plan
from tests.support.simulated import no_op_export

KINDS = {3: "postgresql", 4: "snowflake", 5: "s3-compatible", 6: "aws-redshift", 7: "aws-redshift"}
SECRETS = {f"RECONCILER_SECRET_TABLE_{name}": "a-secret-value" for name in ("USER", "PASSWORD")}
S3 = {"bucket_name": "b", "region": "r", "prefix": "p/"}
SNOWFLAKE = {"database": "d", "warehouse": "w", "schema": "s", "table_name": "t"}
LEFT_OVER = {
    "Bucket": {
        "type": "S3Compatible",
        "integration": 5,
        "config": {**S3, "endpoint_url": "https://s3.example.com"},
    },
    "Snow": {
        "type": "Snowflake",
        "integration": 4,
        "config": {**SNOWFLAKE, "account": "acme", "authentication_type": "password"},
    },
}


def seed_of(destinations: dict[str, dict[str, Any]]) -> dict[str, Any]:
    exports = [no_op_export(name, destination=it) for name, it in destinations.items()]
    return {
        **seed({"id": 1, "name": "Web", "batch_exports": exports}),
        "integrations": [
            {"id": number, "project": 1, "kind": kind, "config": {"host": "h"}}
            for number, kind in KINDS.items()
        ],
    }


def edited(folder: Path, name: str, **values: Any) -> None:
    """Set keys of an imported destination, and of its config. MISSING removes one."""
    for path in folder.rglob("*.yaml"):
        body = yaml.safe_load(path.read_text())
        for export in body.get("batch_exports", {}).values():
            if export["name"] == name:
                destination = export["destination"]
                for key, value in values.items():
                    at = destination if key == "integration" else destination["config"]
                    at[key] = value
                    if value is MISSING:
                        del at[key]
                path.write_text(json.dumps(body))


def test_import_drops_the_keys_that_a_migrated_export_kept(
    tmp_path: Path, service_of: StartService
) -> None:
    """Old keys that are not secret are returned, and refused when they are sent (20)."""
    running = service_of(seed_of(LEFT_OVER), "--dialect", "2026")
    old = {"endpoint_url", "account", "authentication_type"}
    live = {key for export in running.exports().values() for key in export["destination"]["config"]}
    assert old <= live
    folder = new_workspace(tmp_path / "w")
    ran = run_import(folder, running)
    assert ran.code == 0, ran.err
    assert ran.err.count("no longer has this field") == 3, ran.err
    exports = resources(folder)["batch_exports"].values()
    assert not old & {key for export in exports for key in export["destination"]["config"]}
    assert run_plan(folder, running).code == 0
    edited(folder, "Bucket", prefix="q/")
    edited(folder, "Snow", schema="t")
    ran = apply(folder, running)
    assert ran.code == 0, ran.err
    assert run_plan(folder, running).code == 0


TABLE = {"database": "d", "schema": "s", "table_name": "t"}
OLD = {"host": "h", "user": "u", "password": "a-secret-value"}
INLINE = {
    "host": "h",
    "user": "${secret:env:RECONCILER_SECRET_TABLE_USER}",
    "password": "${secret:env:RECONCILER_SECRET_TABLE_PASSWORD}",
}


@pytest.mark.parametrize(
    "case",
    [
        ("Redshift", 6, {"schema": "n"}, 6, 0),
        ("Redshift", 6, {"integration": MISSING}, 6, 1),
        ("Redshift", 6, {"integration": 7}, 7, 0),
        ("Redshift", 6, {"integration": None, **INLINE}, 6, 5),
        ("Redshift", None, {"schema": "n"}, None, 0),
        ("Redshift", None, {"schema": "n", "integration": 6}, 6, 0),
        ("Postgres", 3, {"schema": "n"}, 3, 0),
        ("Postgres", 3, {"integration": None, **INLINE}, None, 0),
    ],
    ids=lambda case: f"{case[0]}-{case[1]}-{case[3]}",
)
def test_changes_of_tables_with_and_without_an_integration(
    service_of: StartService, tmp_path: Path, case: tuple[Any, ...]
) -> None:
    """Redshift is sent its integration again, and Postgres drops one with null (20)."""
    type_name, integration, change, after, code = case
    folder = new_workspace(tmp_path / "w")
    config = TABLE if integration else {**TABLE, **OLD}
    destination = {"type": type_name, "integration": integration, "config": config}
    running = service_of(seed_of({"Table": destination}), "--dialect", "2026")
    assert run_import(folder, running).code == 0
    edited(folder, "Table", **change)
    ran = apply(folder, running)
    assert ran.code == code, ran.err
    live = running.exports()["Table"]["destination"]
    assert (live.get("integration"), live["config"]["schema"]) == (after, change.get("schema", "s"))
    if code == 0:
        assert run_plan(folder, running, **SECRETS).code == 0


def apply(folder: Path, running: RunningEmulator) -> Ran:
    words = ("apply", "-C", folder, "--auto-approve", "--no-inventory")
    return reconciler(*words, environ={**running.environ(), **SECRETS})


TOKEN = "phc_r7Kq2XvLw9TzB4mNcY8sHdFj"
ACCESS_KEY, SECRET_KEY = "AKIAQ3ZT7WPLX5NRB2KD", "v9Xq2Lr7Tz4Bn8Wm3Yc6Hd1Fj5Ks0PgAe+RuZ/oQ"
PASSWORD = "Tr0ub4dor-zx81-quill"
OWN_KEYS = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
INPUTS = {
    "s3_bucket": "b",
    "region_name": "r",
    "s3_key_prefix": "p",
    "authorization": OWN_KEYS,
}
RETURNED = {
    "2025": {
        "Http": {"type": "HTTP", "config": {"url": "https://h.example.com", "token": TOKEN}},
        "Copy": {
            "type": "Redshift",
            "config": {
                **TABLE,
                "host": "h",
                "port": "5439",
                "has_self_signed_cert": "True",
                "properties_data_type": "varchar",
                "mode": "COPY",
                "copy_inputs": {**INPUTS, "bucket_credentials": OWN_KEYS},
            },
        },
        "Bucket": {
            "type": "S3",
            "config": {
                **S3,
                "max_file_size_mb": "5",
                "use_virtual_style_addressing": "False",
                "exclude_events": ["1", "a"],
                "retired": "5",
            },
        },
    },
    "2026": {
        "Http": {
            "type": "HTTP",
            "config": {"url": "https://us.i.posthog.com/batch/", "token": TOKEN},
            "integration": None,
        },
        "Copy": {
            "type": "Redshift",
            "integration": 6,
            "config": {
                **TABLE,
                "mode": "COPY",
                "password": PASSWORD,
                "copy_inputs": {**INPUTS, "bucket_credentials": "8"},
            },
        },
        "Bucket": {
            "type": "S3Compatible",
            "integration": 5,
            "config": {
                **S3,
                "max_file_size_mb": "5",
                "endpoint_url": "https://s3.example.com",
                "aws_secret_access_key": SECRET_KEY,
            },
        },
    },
}
"""Destinations as two releases of the service's own code returned them (issue 31)."""


@pytest.mark.parametrize("dialect", RETURNED)
def test_what_real_servers_return_is_imported_without_secrets(
    tmp_path: Path, service_of: StartService, dialect: str
) -> None:
    """Numbers as text, keys in nested objects, tokens in clear: the plan is empty."""
    running = service_of(seed_of({}), "--dialect", dialect)
    for name in RETURNED[dialect]:
        body = no_op_export(name)
        running.call("POST", "/api/projects/1/batch_exports/", body).raise_for_status()
    page = running.call("GET", "/api/projects/1/batch_exports/").json()
    for export in page["results"]:
        export["destination"] = RETURNED[dialect][export["name"]]
    rule = {"match": {"method": "GET", "path": "*/batch_exports/"}, "fault": "body"}
    running.admin("PUT", "faults", [{**rule, "merge": {"results": page["results"]}}])
    folder = new_workspace(tmp_path / "w")
    repository = Git.init(folder)
    imported = run_import(folder, running)
    assert imported.code == 0, imported.err
    outputs = [imported, run_plan(folder, running, "--out", tmp_path / "plan.json")]
    repository.commit()
    outputs += [
        reconciler(*words, "-C", folder, environ=running.environ())
        for words in (("plan", "--format", "markdown"), ("plan", "-v"), ("drift",), ("status",))
    ]
    assert [ran.code for ran in outputs] == [0] * 6
    (file,) = folder.rglob("web.yaml")
    file.write_text(file.read_text().replace("s3_bucket: b", "s3_bucket: c"))
    changed = run_plan(folder, running, "--verbose", "--out", tmp_path / "changed.json")
    assert "copy_inputs" in changed.out
    outputs.append(changed)
    texts = [text.encode() for ran in outputs for text in (ran.out, ran.err)]
    texts += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for secret in (TOKEN, ACCESS_KEY, SECRET_KEY, PASSWORD):
        assert not [text for text in texts if secret.encode() in text]
    exports = {item["name"]: item for item in resources(folder)["batch_exports"].values()}
    assert set(exports) == set(RETURNED[dialect])
    assert exports["Bucket"]["destination"]["config"]["max_file_size_mb"] == 5
    inputs = exports["Copy"]["destination"]["config"]["copy_inputs"]
    assert inputs["authorization"]["aws_secret_access_key"].startswith("${secret:env:")
