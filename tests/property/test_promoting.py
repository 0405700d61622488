"""`promote` in any workspace: then only intended differences are left, and no other changes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.commands.compare import compared, open_pair
from reconciler.commands.promote import promote
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.errors import ReconcilerError
from reconciler.files.loading import load
from reconciler.model.resource import Resource
from reconciler.model.values import Address
from tests.conftest import LONG
from tests.support.cli import write

RUNTIME = Runtime(environ={}, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
WORKSPACE = """\
version: 1
secrets: [KEY, OTHER]
vars: {size: small, kind: hour}
environments:
  one: {vars: {size: large}}
  two: {vars: {kind: day}}
  three: {}
defaults:
  batch_export: {project: web}
"""
PROJECTS = "projects:\n  web: {name: Web}\n  app: {name: App, environments: [one, three]}\n"
_texts = st.sampled_from(["a/", "b/", "${var:size}/", "x ${var:size}"])
_names = st.sampled_from(["a", "b", "${var:size}"])
_intervals = st.sampled_from(["hour", "day", "${var:kind}"])
_keys = st.sampled_from(["${secret:env:KEY}", "${secret:env:OTHER}"])
_S3 = {
    "bucket_name": "acme",
    "region": "eu-central-1",
    "prefix": "a/",
    "aws_access_key_id": "${secret:env:KEY}",
    "aws_secret_access_key": "${secret:env:KEY}",
}
_configs = st.fixed_dictionaries(
    {}, optional={"prefix": _texts, "bucket_name": _names, "aws_access_key_id": _keys}
)
_destinations = st.one_of(
    _configs.map(lambda config: {"config": config} if config else {"type": "S3"}),
    st.just({"type": "NoOp", "config": {}}),
)
_overrides = st.fixed_dictionaries(
    {},
    optional={
        "interval": _intervals,
        "paused": st.booleans(),
        "name": st.sampled_from(["First", "Second"]),
        "destination": _destinations,
        "project": st.sampled_from(["web", {"name": "Live"}, {"id": 7}]),
        "lifecycle": st.just({"protect": True}),
        "secret_version": st.sampled_from(["1", "2"]),
        "end_at": st.sampled_from(["${unset}", "2030-01-01T00:00:00Z"]),
    },
)


@st.composite
def _exports(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an export with overrides in up to three environments."""
    body: dict[str, Any] = {
        "name": "Lake",
        "interval": "hour",
        "end_at": "2031-01-01T00:00:00Z",
        "destination": {"type": "S3", "config": dict(_S3)},
    }
    listed = draw(
        st.sampled_from([None, ["one"], ["one", "two"], ["two", "three"], ["one", "three"]])
    )
    if listed is not None:
        body["environments"] = listed
    overrides = {name: draw(_overrides) for name in ("one", "two", "three") if draw(st.booleans())}
    if layers := {name: layer for name, layer in overrides.items() if layer}:
        body["overrides"] = layers
    return body


@st.composite
def workspaces(draw: st.DrawFn) -> dict[str, str]:
    exports = {f"e{number}": draw(_exports()) for number in range(draw(st.integers(1, 3)))}
    for key, body in exports.items():
        for layer in (body, *body.get("overrides", {}).values()):
            if "name" in layer:
                layer["name"] += key
    own = {"defaults": {"batch_export": draw(_overrides)}} if draw(st.booleans()) else {}
    for body in own.values():
        body["batch_export"].pop("name", None)
    dumped = yaml.safe_dump(
        json.loads(json.dumps({**own, "batch_exports": exports})),
        sort_keys=False,
        default_flow_style=draw(st.sampled_from([None, False])),
    )
    text = "\n".join(
        f"{line}  # {number}" if line.startswith("    ") and not draw(st.integers(0, 4)) else line
        for number, line in enumerate(dumped.splitlines())
    )
    return {"reconciler.yaml": WORKSPACE, "projects.yaml": PROJECTS, "exports.yaml": text + "\n"}


def resolved(folder: Path, environment: str) -> dict[Address, Resource]:
    """Return the resources of an environment without their places."""
    loaded = load(folder, environment=environment, environ={})
    resources = loaded.desired.resources
    return {address: replace(resource, mark=None) for address, resource in resources.items()}


def comments(text: str) -> list[str]:
    """Return the comments of a file in their order."""
    return re.findall("  # .*", text)


def commented(text: str) -> list[tuple[str, str]]:
    """Return the comments of a file, each with the field of a resource that it is in."""
    field, lines = "", []
    for line in text.splitlines():
        named = re.match(r" {4}(\w+):", line)
        field = named[1] if named else field
        lines += [(field, comment) for comment in comments(line)]
    return lines


@settings(max_examples=1000 if LONG else 20)
@given(workspaces())
def test_a_promotion_leaves_only_intended_differences(files: dict[str, str]) -> None:
    with TemporaryDirectory() as name:
        folder = write(Path(name), files)
        workspace = Workspace(folder, trust_workspace=True, runtime=RUNTIME)
        before = {other: resolved(folder, other) for other in ("one", "three")}
        before_it = compared(open_pair(workspace, ("one", "two")))
        try:
            changes = promote(workspace, open_pair(workspace, ("one", "two"))).changes
        except ReconcilerError as error:
            if not re.match(r"exports\.yaml:\d+:\d+: cannot edit a value with ", error.message):
                raise
            assert {path: (folder / path).read_text() for path in files} == files
            return
        after = compared(open_pair(workspace, ("one", "two")))
        kept = comments((folder / "exports.yaml").read_text())
        before_that = commented(files["exports.yaml"])
        assert [comment for _, comment in before_that if comment in kept] == kept
        removed = [item for item in before_that if item[1] not in kept]
        # Only overrides and lists of environments are edited.
        assert {field for field, _ in removed} <= {"overrides", "environments"}
        assert not after.unintended
        assert not after.only_first
        left = [item.address for item in before_it.only_second]
        assert [item.address for item in after.only_second] == left
        assert before == {other: resolved(folder, other) for other in ("one", "three")}
        again = promote(workspace, open_pair(workspace, ("one", "two")))
        assert not again.changes
        assert bool(changes) == bool(before_it.unintended or before_it.only_first)
