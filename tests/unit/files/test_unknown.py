"""What is not known, or wrong already, is no further mistake: unset variables and follow-ups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.files.loading import load_all, load_at
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import ParsedFiles
from reconciler.model.schemas import schema, schema_names, types_of
from reconciler.model.settings import Readable
from reconciler.model.values import Path as Place
from tests.support.cli import write
from tests.support.workspaces import codes, problems

TYPES = [name for name in schema_names() if name.startswith("destinations/")]
UNSET, WITHIN = "${env:UNSET}", "a${env:UNSET}b"
GOOD: dict[Place, str] = {
    ("lifecycle", "ignore_changes", 0): "name",
    ("project",): "web",
    ("start_at",): "2026-01-01T00:00:00Z",
    ("end_at",): "2027-01-01T00:00:00Z",
    ("timezone",): "Europe/Berlin",
    ("session_recording_sample_rate",): "0.25",
    ("destination", "type"): "NoOp",
}
"""What goes into fields that take no odd text and have no list of what they take."""
_FLAG = "session_recording_linked_flag"
BESIDE: dict[tuple[str, str | int], dict[str, Any]] = {
    ("batch_export", "primary_key"): {"model": "hogql"},
    ("batch_export", "version_key"): {"model": "hogql"},
    ("project", _FLAG): {_FLAG: {"id": 1, "key": "k"}},
}
"""What some fields go together with."""


def export(of_type: str = "NoOp", **fields: Any) -> dict[str, Any]:
    known = schema(f"destinations/{of_type}") or {}
    needed = (*known.get("required", ()), *known.get("x-required-unless", ()))
    config = {name: valid(known["properties"][name]) for name in needed}
    whole = {"project": "web", "name": "Lake", "interval": "hour"}
    return {**whole, "destination": {"type": of_type, "config": config}, **fields}


def configured(**config: Any) -> dict[str, Any]:
    """Return an export to S3 with more in its configuration."""
    whole = export("S3")
    whole["destination"]["config"] |= config
    return whole


def workspace(
    projects: Any = None, exports: Any = None, own: dict[str, Any] | None = None
) -> dict[str, str]:
    settings = {"version": 1, "env": ["UNSET"], "secrets": ["S"], **(own or {})}
    resources = {
        "projects": projects or {"web": {"name": "Web"}},
        "batch_exports": exports or {"lake": export()},
    }
    return {"reconciler.yaml": dumped(settings), "a.yaml": dumped(resources)}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - each has a line of its own
        return True


def dumped(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False)


def told(folder: Path, files: dict[str, str], environ: dict[str, str] | None = None) -> list[str]:
    found = load_all(write(folder, files), environ=environ or {})
    return [code for code in codes(found) if code != "feature-flag"]


def valid(node: Mapping[str, Any]) -> Any:
    """Some value that a field takes, as text where it takes text."""
    if node.get("x-secret"):
        return "${secret:env:S}"
    for word in ("enum", "x-open-enum", "examples"):
        if word in node:
            return node[word][0]
    if node.get("x-url"):
        return "https://example.com"
    return {"string": "abc", "integer": 1, "boolean": True}[types_of(node)[0]]


def texts(node: Mapping[str, Any], path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the fields of a schema, at any depth, that take text, and lists of it, with schemas."""
    for name, below in node.get("properties", {}).items():
        if name in ("environments", "overrides") or below.get("x-secret"):
            continue
        if "string" in types_of(below):
            yield (*path, name), below
        if "items" in below and "string" in types_of(below["items"]):
            yield (*path, name, 0), below["items"]
        yield from texts(below, (*path, name))


def with_value(holder: dict[str, Any], path: Place, value: Any) -> dict[str, Any]:
    """A copy with a value at a path. What is in a list is alone there."""
    first, *rest = path
    if not rest:
        return {**holder, str(first): value}
    if rest == [0]:
        return {**holder, str(first): [value]}
    below = holder.get(str(first))
    inside = with_value(below if isinstance(below, dict) else {}, tuple(rest), value)
    return {**holder, str(first): inside}


NAMES = ("project", "batch_export", *TYPES)
EVERYWHERE = {(name, path): node for name in NAMES for path, node in texts(schema(name) or {})}
assert len(EVERYWHERE) > 80


def placed(name: str, path: Place, value: Any) -> dict[str, str]:
    beside = BESIDE.get((name, path[0]), {})
    if name == "project":
        return workspace(projects={"web": with_value({"name": "Web", **beside}, path, value)})
    if name == "batch_export":
        of_type = "AwsS3" if "integration" in path else "NoOp"
        return workspace(exports={"lake": with_value(export(of_type, **beside), path, value)})
    whole = export(name.split("/")[1])
    whole["destination"]["config"] = with_value(whole["destination"]["config"], path, value)
    return workspace(exports={"lake": whole})


@pytest.mark.parametrize(("name", "path"), EVERYWHERE)
def test_an_unset_variable_is_no_mistake_where_text_goes(
    tmp_path: Path, name: str, path: Place
) -> None:
    good = GOOD.get(path) or valid(EVERYWHERE[name, path])
    assert told(tmp_path / "set", placed(name, path, UNSET), {"UNSET": str(good)}) == []
    assert told(tmp_path / "unset", placed(name, path, UNSET)) == []
    assert told(tmp_path / "within", placed(name, path, WITHIN)) == []


@pytest.mark.parametrize(("name", "path"), EVERYWHERE)
@pytest.mark.parametrize("value", ["'a${var:nope}b'", "'${env:UNCLOSED'", "yes"])
def test_a_broken_value_is_told_once(tmp_path: Path, name: str, path: Place, value: str) -> None:
    files = placed(name, path, "PLACE")
    files["a.yaml"] = files["a.yaml"].replace("PLACE", value)
    assert len(told(tmp_path, files)) == 1


@pytest.mark.parametrize("value", [UNSET, WITHIN])
def test_an_unset_variable_is_no_mistake_in_an_environment(tmp_path: Path, value: str) -> None:
    environments = {
        "a": {"base_url": value, "organization": value},
        "b": {"base_url": f"http://{value}", "vars": {"x": value}, "organization": "${var:x}"},
    }
    defaults = {"project": {"timezone": value}}
    files = workspace(own={"environments": environments, "defaults": defaults})
    assert told(tmp_path, files) == []


PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": "VALUE"}, {"id": "x"}),
    ({"name": "VALUE", "project": "web"}, {"name": "Lake", "project": {"name": "Web"}}),
    ({"project": "VALUE"}, {}),
    ({"project": {"name": "VALUE"}}, {"name": "Lake"}),
    ({"state": "VALUE"}, {"name": "Lake", "project": {"name": "Web"}}),
    ({"state": "VALUE", "project": "old"}, {}),
    ({"state": "VALUE", "lifecycle": {"protect": True}}, {}),
    ({"lifecycle": {"renamed_from": ["VALUE"]}}, {"lifecycle": {"renamed_from": ["x"]}}),
    ({"interval": "VALUE", "offset_day": 1, "offset_hour": 2}, {}),
    ({"model": "VALUE", "primary_key": ["a"], "version_key": ["b"]}, {}),
    ({"start_at": "VALUE", "end_at": "2026-01-01T00:00:00Z"}, {}),
    ({"end_at": "VALUE", "start_at": "2026-01-01T00:00:00Z"}, {}),
    ({"destination": {"type": "VALUE", "config": {"any": "${secret:env:S}"}}}, {}),
    ({"destination": {"type": "VALUE"}}, {}),
    ({**export("S3"), "model": "VALUE"}, {}),
    (configured(compression="gzip", file_format="VALUE"), {}),
    (configured(compression="VALUE", file_format="Parquet"), {}),
]


def pair(first: dict[str, Any], second: dict[str, Any], value: str) -> dict[str, str]:
    other = {"name": "Other", **second}
    projects = {"web": {"name": "Web"}, "old": {"name": "Old", "state": "absent"}}
    files = workspace(projects, {"lake": export(**first), "other": export(**other)})
    files["a.yaml"] = files["a.yaml"].replace("VALUE", value)
    return files


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("value", [UNSET, WITHIN])
def test_what_a_variable_may_turn_into_contradicts_nothing(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], value: str
) -> None:
    assert told(tmp_path, pair(first, second, value)) == []


TWICE: list[dict[str, Any]] = [
    {"id": "VALUE"},
    {"name": "VALUE"},
    {"project": "VALUE", "name": "Same"},
    {"project": {"id": "VALUE"}, "name": "Same"},
    {"project": {"name": "VALUE"}, "name": "Same"},
    {"lifecycle": {"renamed_from": ["VALUE"]}},
    {"state": "VALUE", "name": "Same"},
]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *((fields, fields) for fields in TWICE),
        # Names that are not known do not clash by their parents.
        ({"name": "VALUE"}, {"name": "VALUE", "project": {"name": "Web"}}),
    ],
)
@pytest.mark.parametrize("value", ["${var:nope}", "yes"])
def test_the_same_mistake_twice_is_told_twice_and_no_more(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], value: str
) -> None:
    assert len(told(tmp_path, pair(first, second, value))) == 2


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ("projects: [web]", "not-a-mapping"),
        ("projects: yes", "ambiguous-boolean"),
        ("projects: {web: null}", "not-a-mapping"),
        ("projects: {web: {}}", "missing-field"),
        ("projects: {web: {name: Web, environments: [nope]}}", "unknown-environment"),
        ("project: {web: {name: Web}}", "unknown-field"),
        ("projects: {web: {name: Web}", "bad-yaml"),
        ("[]", "not-a-mapping"),
    ],
)
def test_a_project_that_is_broken_is_not_missed_too(tmp_path: Path, broken: str, code: str) -> None:
    exports = {f"e{number}": export(name=f"E{number}") for number in range(3)}
    files = {
        "reconciler.yaml": "version: 1\nenvironments: {a: {}, b: {}}\n",
        "exports.yaml": dumped({"batch_exports": exports}),
        "projects.yaml": f"{broken}\n",
    }
    assert told(tmp_path, files) == [code]


def test_a_parent_that_is_nowhere_is_still_missed(tmp_path: Path) -> None:
    files = workspace(projects={"shop": {"name": "Shop"}, "other": {}})
    assert sorted(told(tmp_path, files)) == ["missing-field", "unknown-parent"]


def test_a_default_environment_that_is_misread_hides_nothing(tmp_path: Path) -> None:
    settings = "version: 1\ndefault: yes\nenvironments: {a: {}, b: {}}\n"
    text = workspace()["a.yaml"].replace("interval: hour", "interval: hour\n    nope: 1")
    every = told(tmp_path, {"reconciler.yaml": settings, "a.yaml": text})
    assert every == codes(problems(tmp_path, text, settings))
    assert every == ["unknown-field", "ambiguous-boolean"]


@pytest.mark.parametrize(("field", "value"), [("file_format", [1]), ("compression", {"a": 1})])
def test_a_format_that_is_no_text_is_a_diagnostic(tmp_path: Path, field: str, value: Any) -> None:
    whole = configured(**{"file_format": "Parquet", "compression": "gzip", field: value})
    assert told(tmp_path, workspace(exports={"lake": whole})) == ["wrong-type"]


def test_a_git_base_is_there_without_its_variables(tmp_path: Path) -> None:
    fields = {"interval": "VALUE", "start_at": "VALUE", "project": "VALUE"}
    source = FolderSource(write(tmp_path, pair(fields, {}, UNSET)))
    parsed = ParsedFiles()
    found = load_at(source, environment="default", environ={}, parsed=parsed, trusted=Readable())
    assert len(found.resources) == 4
