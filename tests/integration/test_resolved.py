"""`show --resolved`: no network, no secret, no key."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.conftest import ROOT
from tests.support.cli import reconciler, write

WORKSPACE = ROOT / "tests/golden/resolved/workspace"
ADDRESS = "batch_export.web-events-s3"


def test_a_resource_is_shown_with_the_origin_of_each_field() -> None:
    shown = reconciler("show", "--resolved", ADDRESS, "-C", WORKSPACE, "--trust-workspace")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == (WORKSPACE / "../expected/staging.txt").read_text(encoding="utf-8")


def test_the_json_has_layers_files_and_lines() -> None:
    shown = reconciler(
        *("show", "--resolved", "web-events-s3", "-C", WORKSPACE, "-e", "staging"),
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
        *("show", "--resolved", "batch_export.web-events-s4"),
        *("-C", WORKSPACE, "--trust-workspace"),
    )
    assert unknown.code == 64
    assert "did you mean batch_export.web-events-s3?" in unknown.err
    elsewhere = reconciler(
        *("show", "--resolved", "prod-only", "-C", WORKSPACE, "--trust-workspace")
    )
    assert elsewhere.code == 1
    assert "use -e production" in elsewhere.err
    files = {
        "reconciler.yaml": "version: 1\nenv: [NOPE]\n",
        "a.yaml": 'projects: {a: {name: "${env:NOPE}"}}\n',
    }
    unset = reconciler("show", "--resolved", "a", "-C", write(tmp_path, files))
    assert unset.code == 1
    assert "a.yaml:1:22: error: environment variable NOPE is not set" in unset.err


def test_a_plan_and_a_resource_cannot_be_shown_together(tmp_path: Path) -> None:
    for arguments in (
        ("show",),
        ("show", tmp_path / "plan.json", "--resolved", ADDRESS),
        ("show", tmp_path / "plan.json", "-e", "staging"),
        ("show", "--resolved", ADDRESS, "--show-unmanaged"),
    ):
        refused = reconciler(*arguments)
        assert (refused.code, refused.out) == (64, "")
