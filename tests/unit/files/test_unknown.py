"""What is not known, or wrong already, is no further mistake: unset variables and follow-ups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.files.loading import load_all, load_at
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import ParsedFiles
from reconciler.model.schemas import schema, schema_names, types_of
from reconciler.model.settings import Readable
from tests.support.cli import write
from tests.support.workspaces import codes, problems

TYPES = [name for name in schema_names() if name.startswith("destinations/")]
UNSET, WITHIN = "${env:UNSET}", "a${env:UNSET}b"


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


def told(folder: Path, files: dict[str, str]) -> list[str]:
    found = load_all(write(folder, files), environ={})
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


def filled(node: Mapping[str, Any], value: str) -> dict[str, Any]:
    """Return what has a value in every field, at any depth, that takes text, or a list of it."""
    fields: dict[str, Any] = {}
    for name, below in node.get("properties", {}).items():
        if name in ("environments", "overrides", "destination") or below.get("x-secret"):
            continue
        if "string" in types_of(below):
            fields[name] = value
        elif "items" in below and "string" in types_of(below["items"]):
            fields[name] = [value]
        elif inner := filled(below, value):
            fields[name] = inner
        elif name in node.get("required", ()):
            fields[name] = 1
    return fields


def everywhere(value: str) -> dict[str, str]:
    """Return a project and an export of each type with a value in each field that takes text."""
    exports = {"none": {**export(), **filled(schema("batch_export") or {}, "VALUE")}}
    for name in TYPES:
        whole = export(name.split("/")[1], name=name)
        whole["destination"]["config"] |= filled(schema(name) or {}, "VALUE")
        exports[name.replace("/", "-")] = whole
    exports["destinations-AwsS3"]["destination"]["integration"] = "VALUE"
    files = workspace({"web": filled(schema("project") or {}, "VALUE")}, exports)
    assert files["a.yaml"].count("VALUE") > 80
    return {name: text.replace("VALUE", value) for name, text in files.items()}


@pytest.mark.parametrize("value", [UNSET, WITHIN])
def test_an_unset_variable_is_no_mistake_where_text_goes(tmp_path: Path, value: str) -> None:
    assert told(tmp_path, everywhere(value)) == []


@pytest.mark.parametrize("value", ["'a${var:nope}b'", "'${env:UNCLOSED'", "yes"])
def test_a_broken_value_is_told_once(tmp_path: Path, value: str) -> None:
    files = everywhere(value)
    lines = [n for n, line in enumerate(files["a.yaml"].splitlines(), 1) if value in line]
    found = load_all(write(tmp_path, files), environ={})
    assert sorted(each.at.line for each in found if each.code != "feature-flag") == lines


@pytest.mark.parametrize("value", [UNSET, WITHIN])
def test_an_unset_variable_is_no_mistake_in_an_environment(tmp_path: Path, value: str) -> None:
    environment = {"base_url": value, "organization": "${var:x}", "vars": {"x": value}}
    own = {"environments": {"a": environment}, "defaults": {"project": {"timezone": value}}}
    assert told(tmp_path, workspace(own=own)) == []


PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": "VALUE"}, {"id": "x"}),
    ({"name": "VALUE", "project": "web"}, {"name": "Lake", "project": {"name": "Web"}}),
    ({"project": {"name": "VALUE"}}, {"name": "Lake"}),
    ({"state": "VALUE"}, {"name": "Lake", "project": {"name": "Web"}}),
    ({"state": "VALUE", "project": "old"}, {}),
    ({"state": "VALUE", "lifecycle": {"protect": True}}, {}),
    ({"lifecycle": {"renamed_from": ["VALUE"]}}, {"lifecycle": {"renamed_from": ["x"]}}),
    ({"interval": "VALUE", "offset_day": 1, "offset_hour": 2}, {}),
    ({"model": "VALUE", "primary_key": ["a"], "version_key": ["b"]}, {}),
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
    source, parsed = FolderSource(write(tmp_path, pair(fields, {}, UNSET))), ParsedFiles()
    found = load_at(source, environment="default", environ={}, parsed=parsed, trusted=Readable())
    assert len(found.resources) == 4
