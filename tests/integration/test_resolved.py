"""`show NAME`: no network, no secret, no key."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.conftest import ROOT
from tests.support.cli import Ran, reconciler, write

WORKSPACE = ROOT / "tests/golden/resolved/workspace"
ADDRESS = "batch_export.web-events-s3"


def show(*words: str | Path, folder: Path = WORKSPACE) -> Ran:
    return reconciler("show", *words, "-C", folder, "--trust-workspace")


@pytest.mark.parametrize("name", [ADDRESS, "web-events-s3"])
def test_x8_a_resource_is_shown_with_the_origin_of_each_field(name: str) -> None:
    shown = show(name)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == (WORKSPACE / "../expected/staging.txt").read_text(encoding="utf-8")


def test_the_json_has_layers_files_and_lines() -> None:
    resource = orjson.loads(show("web-events-s3", "-e", "staging", "--format", "json").out)
    (bucket,) = [field for field in resource["fields"] if field["path"][-1] == "bucket_name"]
    assert bucket["value"] == "acme-data-staging"
    place = {"file": "exports/events.yaml", "line": 13, "column": 9}
    assert bucket["origin"] == {"layer": "resource", **place}
    assert bucket["references"][0]["origin"]["layer"] == "environments.staging.vars"


def test_an_unknown_resource_is_reported_with_a_hint(tmp_path: Path) -> None:
    unknown = show("batch_export.web-events-s4")
    assert unknown.code == 64
    assert "did you mean batch_export.web-events-s3?" in unknown.err
    elsewhere = show("prod-only")
    where = "is not in environment staging: exports/events.yaml:35 limits it to production"
    told = f"error: batch_export.prod-only {where}\n  hint: use -e production\n"
    assert (elsewhere.code, elsewhere.err) == (1, told)
    files = {
        "reconciler.yaml": "version: 1\nenv: [NOPE]\n",
        "a.yaml": 'projects: {a: {name: "${env:NOPE}"}}\n',
    }
    unset = show("a", folder=write(tmp_path, files))
    assert unset.code == 1
    assert "a.yaml:1:22: error: environment variable NOPE is not set" in unset.err


def test_options_of_files_and_of_resources_do_not_mix(tmp_path: Path) -> None:
    plan = write(tmp_path, {"plan.json": "{}"}) / "plan.json"
    for arguments, code, words in (
        ((), 64, "Missing argument"),
        ((plan, "-e", "staging"), 64, "-e and --strict require a resource"),
        ((ADDRESS, "--show-unmanaged"), 64, "--show-unmanaged requires a file"),
        ((ADDRESS, "--run", "1"), 64, "--run requires a file"),
        ((plan, "--run", "1"), 1, "plan.json is not an audit log"),
        ((plan,), 1, "plan.json: not a plan file"),
        ((tmp_path / "none.json",), 1, "none.json can't be read"),
    ):
        refused = reconciler("show", *arguments)
        assert (refused.code, refused.out) == (code, "")
        assert words in refused.err
