"""Test what diagnostics say about environments, variables and connections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.files.loading import load, load_all
from reconciler.render.diagnostics import diagnostics_as_text
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

EXPORT = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination: {type: S3, config: {bucket_name: "${var:bucket}"}}
"""
ENVIRONMENTS = """\
version: 1
vars: {bucket: acme}
environments:
  staging: {}
  production: {vars: {bucket: 5}}
  third: {}
"""
KEYS = "aws_access_key_id: '${secret:env:RECONCILER_SECRET_A}', \
aws_secret_access_key: '${secret:env:RECONCILER_SECRET_A}', region: r, prefix: p"


def export(value: str = "${var:bucket}", extra: str = "") -> str:
    config = f'bucket_name: "{value}", {KEYS}'
    return EXPORT.replace('bucket_name: "${var:bucket}"', config) + extra


def reported(folder: Path, files: dict[str, str]) -> list[Diagnostic]:
    write(folder, files)
    return list(load_all(folder, environ={}))


def test_configuration_3_every_format_names_the_environments(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": ENVIRONMENTS, "a.yaml": export()})
    validate = ("validate", "-C", tmp_path, "--format")
    (found,) = json.loads(reconciler(*validate, "json").out)["diagnostics"]
    assert found["environments"] == ["production"]
    (result,) = json.loads(reconciler(*validate, "sarif").out)["runs"][0]["results"]
    assert result["properties"]["environments"] == ["production"]
    assert "(in production)" in result["message"]["text"]
    assert "(in production)" in reconciler(*validate, "github").out


def test_configuration_3_the_same_mistake_of_several_environments_is_reported_once(
    tmp_path: Path,
) -> None:
    two = ENVIRONMENTS.replace("third: {}", "third: {vars: {bucket: 5}}")
    (diagnostic,) = reported(tmp_path, {"reconciler.yaml": two, "a.yaml": export()})
    assert diagnostic.environments == ("production", "third")
    assert "(in 2 environments: production, third)" in diagnostics_as_text([diagnostic])
    assert [mark.line for mark, _ in diagnostic.related] == [5, 6]


@pytest.mark.parametrize(
    "workspace",
    [
        ENVIRONMENTS.replace("bucket: acme", "bucket: 5"),
        "version: 1\nvars: {bucket: 5}\nenvironments: {one: {}}\n",
        "version: 1\nvars: {bucket: 5}\n",
    ],
)
def test_configuration_3_a_mistake_of_all_environments_names_none(
    tmp_path: Path, workspace: str
) -> None:
    (diagnostic,) = reported(tmp_path, {"reconciler.yaml": workspace, "a.yaml": export()})
    assert diagnostic.environments == ()
    assert {label for _, label in diagnostic.related} == {"variable bucket"}


def test_configuration_3_a_field_of_defaults_is_wrong_everywhere(tmp_path: Path) -> None:
    workspace = f"{ENVIRONMENTS}defaults: {{batch_export: {{intervall: hour}}}}\n"
    files = {"reconciler.yaml": workspace.replace("5", "acme"), "a.yaml": export()}
    found = reported(tmp_path, files)
    assert [item.environments for item in found if item.code == "unknown-field"] == [()]


def test_unused_variables_are_warnings_at_their_definitions(tmp_path: Path) -> None:
    workspace = (
        "version: 1\nvars: {used: a, inner: b, unused: c}\n"
        "environments: {a: {vars: {unused: d, bucket: '${var:inner}'}}, b: {vars: {bucket: b}}}\n"
    )
    files = {"reconciler.yaml": workspace, "a.yaml": export(extra="# ${var:used}\n")}
    (diagnostic,) = reported(tmp_path, files)
    assert (diagnostic.code, diagnostic.level) == ("unused-variable", Level.WARNING)
    assert (diagnostic.at, len(diagnostic.related)) == (Mark("reconciler.yaml", 2, 27, 6), 1)
    loaded = load(tmp_path, environment="b", environ={})
    assert [item.code for item in loaded.diagnostics] == ["unused-variable"]


def test_a_variable_of_one_environment_that_another_one_uses_is_used(tmp_path: Path) -> None:
    override = "    overrides: {b: {name: '${var:title}'}}\n"
    workspace = "version: 1\nenvironments: {a: {}, b: {vars: {title: B, bucket: b}}}\n"
    files = {"reconciler.yaml": workspace, "a.yaml": export("acme", override)}
    assert [item.message for item in reported(tmp_path, files)] == ["variable 'bucket' is not used"]
    loaded = load(tmp_path, environment="a", environ={})
    assert [item.message for item in loaded.diagnostics] == ["variable 'bucket' is not used"]


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("https://eu.posthog.com/project/12", "remove the path"),
        ("https://eu.posthog.com/project/12/settings", "remove the path"),
        ("https://eu.posthog.com/api", "remove the path"),
        ("https://eu.posthog.com/api/", "remove the path"),
        ("https://eu.posthog.com/organization/members", "remove the path"),
        ("https://host.example/posthog/api/projects/1", "remove the path"),
        ("eu.posthog.com", "use a URL such as https://eu.posthog.com"),
        ("eu.posthog.com/", "use a URL such as https://eu.posthog.com"),
        ("localhost:8010", "use a URL such as https://eu.posthog.com"),
        ("127.0.0.1:8010", "use a URL such as https://eu.posthog.com"),
        ("eu posthog com", "use a URL such as https://eu.posthog.com"),
        ("ftp://eu.posthog.com", "use a URL such as https://eu.posthog.com"),
    ],
)
def test_configuration_9_a_base_url_with_a_path_or_without_a_scheme_is_an_error(
    tmp_path: Path, base_url: str, words: str
) -> None:
    workspace = f"version: 1\nenvironments:\n  a:\n    base_url: {base_url}\n"
    (diagnostic,) = reported(tmp_path, {"reconciler.yaml": workspace})
    assert (diagnostic.code, diagnostic.level) == ("bad-url", Level.ERROR)
    assert diagnostic.hint is not None
    assert words in diagnostic.hint


@pytest.mark.parametrize("base_url", ["https://eu.posthog.com/", "https://host.example/posthog//"])
def test_configuration_9_other_paths_and_trailing_slashes_are_allowed(
    tmp_path: Path, base_url: str
) -> None:
    workspace = f"version: 1\nenvironments:\n  a:\n    base_url: {base_url}\n"
    assert reported(tmp_path, {"reconciler.yaml": workspace}) == []


def connected(folder: Path, base_url: str, key: str = "${env:STAGING_KEY}") -> Path:
    settings = f"{{base_url: '{base_url}', organization: o, api_key: '{key}'}}"
    workspace = f"version: 1\nenvironments: {{staging: {settings}}}\n"
    return write(folder, {"reconciler.yaml": workspace})


def test_configuration_9_a_404_names_the_path_of_the_base_url(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    folder = connected(tmp_path, f"{emulator.base_url}/team/1")
    ran = reconciler("plan", "-C", folder, environ={"STAGING_KEY": "phx_key"})
    assert ran.code == 1
    assert f"`base_url` is {emulator.base_url}/team/1: remove /team/1" in ran.err


@pytest.mark.parametrize("key", ["${env:STAGING_KEY}", "${secret:env:STAGING_KEY}"])
@pytest.mark.parametrize(("value", "state"), [(None, "is not set"), ("", "is empty")])
def test_experience_30_a_missing_key_is_named_as_the_file_writes_it(
    tmp_path: Path, key: str, value: str | None, state: str
) -> None:
    folder = connected(tmp_path, "http://127.0.0.1:9", key)
    ran = reconciler("plan", "-C", folder, environ={} if value is None else {"STAGING_KEY": value})
    assert ran.code == 1
    assert f"secret {key} {state}" in ran.err
    assert "before you apply" not in ran.err
