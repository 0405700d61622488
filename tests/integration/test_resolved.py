"""`show NAME`: no network, no secret, no key."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.conftest import ROOT
from tests.support.cli import reconciler, write

WORKSPACE = ROOT / "tests/golden/resolved/workspace"
ADDRESS = "batch_export.web-events-s3"


def test_a_resource_is_shown_with_the_origin_of_each_field() -> None:
    shown = reconciler("show", ADDRESS, "-C", WORKSPACE, "--trust-workspace")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == (WORKSPACE / "../expected/staging.txt").read_text(encoding="utf-8")


def test_the_json_has_layers_files_and_lines() -> None:
    shown = reconciler(
        *("show", "web-events-s3", "-C", WORKSPACE, "-e", "staging"),
        *("--format", "json", "--trust-workspace"),
    )
    resource = orjson.loads(shown.out)
    (bucket,) = [field for field in resource["fields"] if field["path"][-1] == "bucket_name"]
    assert bucket["value"] == "acme-data-staging"
    assert bucket["origin"] == {
        "layer": "resource",
        "file": "exports/events.yaml",
        "line": 13,
        "column": 9,
    }
    assert bucket["references"][0]["origin"]["layer"] == "environments.staging.vars"


def test_an_unknown_resource_is_reported_with_a_hint(tmp_path: Path) -> None:
    unknown = reconciler(
        *("show", "batch_export.web-events-s4"),
        *("-C", WORKSPACE, "--trust-workspace"),
    )
    assert unknown.code == 64
    assert "did you mean batch_export.web-events-s3?" in unknown.err
    elsewhere = reconciler(*("show", "prod-only", "-C", WORKSPACE, "--trust-workspace"))
    where = "is not in environment staging: exports/events.yaml:35 limits it to production"
    told = f"error: batch_export.prod-only {where}\n  hint: use -e production\n"
    assert (elsewhere.code, elsewhere.err) == (1, told)
    files = {
        "reconciler.yaml": "version: 1\nenv: [NOPE]\n",
        "a.yaml": 'projects: {a: {name: "${env:NOPE}"}}\n',
    }
    unset = reconciler("show", "a", "-C", write(tmp_path, files))
    assert unset.code == 1
    assert "a.yaml:1:22: error: environment variable NOPE is not set" in unset.err


def test_options_of_files_and_of_resources_do_not_mix(tmp_path: Path) -> None:
    plan = write(tmp_path, {"plan.json": "{}"}) / "plan.json"
    for arguments, option in (
        ((), "Missing argument"),
        ((plan, "-e", "staging"), "-e and --strict require a resource"),
        ((ADDRESS, "--show-unmanaged"), "--show-unmanaged requires a file"),
        ((ADDRESS, "--run", "1"), "--run requires a file"),
    ):
        refused = reconciler("show", *arguments)
        assert (refused.code, refused.out) == (64, "")
        assert option in refused.err
    refused = reconciler("show", plan, "--run", "1")
    assert (refused.code, "plan.json is not an audit log" in refused.err) == (1, True)


def test_x8_a_key_is_a_resource_and_a_missing_file_is_named(tmp_path: Path) -> None:
    shown = reconciler("show", "web-events-s3", "-C", WORKSPACE, "--trust-workspace")
    assert (shown.code, ADDRESS in shown.out) == (0, True)
    missing = reconciler("show", tmp_path / "plan.json")
    assert (missing.code, "plan.json can't be read" in missing.err) == (1, True)
