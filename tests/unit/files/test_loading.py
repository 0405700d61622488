"""Files to values: anchors, layers, overrides, the policy, and secrets that are taken out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import BadUsage
from reconciler.files.loading import load, load_all
from reconciler.model.values import Address, SecretRef
from tests.support.cli import write
from tests.support.workspaces import LAKE, PROJECT, VERSION, codes, lake, loaded, told

ANCHORED = """\
projects: {web: {name: Web}}
batch_exports:
  lake: {<<: *export, name: Lake}
  pond: {<<: *export, name: Pond, destination: {type: S3, config: *config}}
"""


@pytest.mark.parametrize("defaults", ["", "defaults: {batch_export: {timezone: Europe/Berlin}}\n"])
def test_x15_anchors_has_a_place_for_the_anchors_of_a_file(tmp_path: Path, defaults: str) -> None:
    """X15: its value counts where an alias refers to it, and nowhere else."""
    anchors = """\
anchors:
  - &export {project: web, interval: day, destination: &none {type: NoOp}}
  - &config {bucket_name: "${var:bucket}", region: eu-central-1, prefix: p/}
  - {unknown: "${var:undefined}", projects: {other: {name: 1}}}
"""
    settings = """\
version: 1
anchors: {unknown: 1, of: &all {vars: {bucket: drop}}}
environments: {staging: *all, production: *all}
"""
    write(tmp_path, {"b.yaml": f"anchors: {{a: 1}}\n{defaults}projects: {{app: {{name: App}}}}\n"})
    text = f"{anchors}{defaults}{ANCHORED}"
    assert codes(told(tmp_path, text, settings)) == ["no-effect"] * bool(defaults)  # Of b.yaml.
    resources = loaded(tmp_path, text, settings, environment="staging").desired.resources
    expected = ["batch_export.lake", "batch_export.pond", "project.app", "project.web"]
    assert sorted(map(str, resources)) == expected
    lake, pond = (resources[Address("batch_export", key)].spec for key in ("lake", "pond"))
    assert (lake["interval"], lake["destination"]) == ("day", {"type": "NoOp"})
    assert pond["destination"]["config"]["bucket_name"] == "drop"
    assert lake.get("timezone") == ("Europe/Berlin" if defaults else None)


def test_x15_anchors_hides_no_mistake(tmp_path: Path) -> None:
    """X15: it is YAML as strict as elsewhere, and a misspelt name is a mistake."""
    files = {
        "reconciler.yaml": "version: 1\nanchor: {}\n",
        "a.yaml": "anchors: {x: &x no}\nprojects: {web: {name: *x}}\n",
        "b.yaml": "anchor: {}\nprojects: {app: {name: App}}\n",
        "c.yaml": "anchors: {x: &x 7}\nprojects: {late: {name: *x}}\n",
        "d.yaml": "anchors: &x D\nprojects: {d: {name: *x}}\n",
    }
    write(tmp_path, files)
    found = [(str(item.at), item.code, item.hint) for item in load_all(tmp_path, environ={})]
    assert found == [
        ("a.yaml:1:14", "ambiguous-boolean", "write false, or quote it: 'no'"),
        ("b.yaml:1:1", "unknown-field", "did you mean 'anchors'?"),
        ("c.yaml:1:14", "wrong-type", "quote it: '7'"),
        ("d.yaml:1:10", "wrong-type", "write a list: `- item` lines, or [item, item]"),
        ("reconciler.yaml:2:1", "unknown-field", "did you mean 'anchors'?"),
    ]


def test_an_environment_is_selected_by_its_name(tmp_path: Path) -> None:
    settings = f"{VERSION}environments: {{staging: {{}}, production: {{}}}}\n"
    write(tmp_path, {"reconciler.yaml": settings, "a.yaml": PROJECT})
    with pytest.raises(BadUsage, match="no environment selected"):
        load(tmp_path, environment=None, environ={})
    with pytest.raises(BadUsage, match="unknown environment 'stagin'") as refused:
        load(tmp_path, environment="stagin", environ={})
    assert "did you mean 'staging'" in (refused.value.hint or "")


DEFAULT_NOOP = "defaults: {batch_export: {destination: {type: NoOp, config: {arg: x}}}}\n"


@pytest.mark.parametrize(("of_type", "config"), [("NoOp", {"arg": "x"}), ("FileDownload", {})])
def test_a_destination_is_merged_with_one_of_its_type(
    tmp_path: Path, of_type: str, config: dict[str, Any]
) -> None:
    text = lake(destination="{type: '${var:type}', config: {}}")
    settings = f"{VERSION}vars: {{type: {of_type}}}\n{DEFAULT_NOOP}"
    found = loaded(tmp_path, text, settings).desired.resources[LAKE]
    assert found.spec["destination"] == {"type": of_type, "config": config}


def test_policy_is_merged_and_knows_its_lines(tmp_path: Path) -> None:
    own = "environments: {a: {policy: {max_deletes: 0, allow_project_deletion: true}}}\n"
    settings = f"{VERSION}policy: {{prune: true, max_deletes: 20%}}\n{own}"
    policy = loaded(tmp_path, PROJECT, settings).policy
    assert (policy.prune, policy.deletable) == (True, {"project"})
    assert policy.marks["max_deletes"].line == 3


def test_a_literal_secret_is_taken_out_of_each_that_shares_a_variable(tmp_path: Path) -> None:
    settings = (
        "version: 1\npolicy: {allow_literal_secrets: true}\n"
        "vars: {web: {url: https://u, token: hunter2}}\n"
    )
    text = lake(destination="{type: HTTP, config: '${var:web}'}")
    other = text.replace("lake:", "other:").replace("Lake", "Other").removeprefix(PROJECT)
    write(tmp_path, {"b.yaml": other})
    found = loaded(tmp_path, text, settings)
    for key in ("lake", "other"):
        config = found.desired.resources[Address("batch_export", key)].spec["destination"]["config"]
        argument = f"batch_export.{key}:destination.config.token"
        assert config["token"] == SecretRef.of("literal", argument)
        assert found.secrets.literals[argument].reveal() == "hunter2"
    assert "hunter2" not in repr(found)
