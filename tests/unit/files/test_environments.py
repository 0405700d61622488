"""Test what diagnostics say about environments, variables and connections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.diagnostics import Level, Mark
from reconciler.render.diagnostics import diagnostics_as_text
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.workspaces import PROJECT, VERSION, codes, lake, loaded, s3, told

ENVIRONMENTS = """\
version: 1
vars: {bucket: acme}
environments:
  staging: {}
  production: {vars: {bucket: 5}}
  third: {}
"""
S3 = lake(destination=s3().replace("bucket_name: b", "bucket_name: '${var:bucket}'"))


def test_configuration_3_every_format_names_the_environments(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": ENVIRONMENTS, "a.yaml": S3})
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
    (diagnostic,) = told(tmp_path, S3, two)
    assert diagnostic.environments == ("production", "third")
    assert "(in 2 environments: production, third)" in diagnostics_as_text([diagnostic])
    assert [mark.line for mark, _ in diagnostic.related] == [5, 6]


def test_configuration_3_a_mistake_of_all_environments_names_none(tmp_path: Path) -> None:
    (diagnostic,) = told(tmp_path, S3, ENVIRONMENTS.replace("bucket: acme", "bucket: 5"))
    assert diagnostic.environments == ()
    assert {label for _, label in diagnostic.related} == {"variable bucket"}


def test_unused_variables_are_warnings_at_their_definitions(tmp_path: Path) -> None:
    settings = (
        "version: 1\nvars: {used: a, inner: b, unused: c}\n"
        "environments: {a: {vars: {unused: d, bucket: '${var:inner}'}}, b: {vars: {bucket: b}}}\n"
    )
    text = f"{S3}# ${{var:used}}\n"
    (diagnostic,) = told(tmp_path, text, settings)
    assert (diagnostic.code, diagnostic.level) == ("unused-variable", Level.WARNING)
    assert (diagnostic.at, len(diagnostic.related)) == (Mark("reconciler.yaml", 2, 27, 6), 1)
    of_one = loaded(tmp_path, text, settings, environment="b").diagnostics
    assert codes(of_one) == ["unused-variable"]


def test_a_variable_of_one_environment_that_another_one_uses_is_used(tmp_path: Path) -> None:
    text = lake(overrides="{b: {name: '${var:title}'}}")
    settings = "version: 1\nenvironments: {a: {}, b: {vars: {title: B, bucket: b}}}\n"
    found = loaded(tmp_path, text, settings, environment="a").diagnostics
    assert [item.message for item in found] == ["variable 'bucket' is not used"]


@pytest.mark.parametrize(
    ("base_url", "hint"),
    [
        ("https://eu.posthog.com/project/12/settings", "remove the path"),
        ("https://host.example/posthog/api/projects/1", "remove the path"),
        ("localhost:8010", "use a URL such as https://eu.posthog.com"),
        ("ftp://eu.posthog.com", "use a URL such as https://eu.posthog.com"),
        ("https://host.example/posthog//", ""),
    ],
)
def test_configuration_9_a_base_url_has_a_scheme_and_no_path_of_a_page(
    tmp_path: Path, base_url: str, hint: str
) -> None:
    settings = f"version: 1\nenvironments:\n  a:\n    base_url: {base_url}\n"
    found = told(tmp_path, PROJECT, settings)
    assert [(each.code, each.level) for each in found] == [("bad-url", Level.ERROR)] * bool(hint)
    assert all(hint in (each.hint or "") for each in found)


def planned(folder: Path, base_url: str, key: str, environ: dict[str, str]) -> Ran:
    settings = f"{{base_url: '{base_url}', organization: o, api_key: '{key}'}}"
    write(folder, {"reconciler.yaml": f"{VERSION}environments: {{staging: {settings}}}\n"})
    return reconciler("plan", "-C", folder, environ=environ)


def test_configuration_9_a_404_names_the_path_of_the_base_url(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    ran = planned(tmp_path, f"{emulator.base_url}/team/1", "${env:KEY}", {"KEY": "phx_key"})
    assert ran.code == 1
    assert f"`base_url` is {emulator.base_url}/team/1: remove /team/1" in ran.err


@pytest.mark.parametrize(
    ("key", "environ", "state"),
    [
        ("${env:KEY}", {}, "is not set"),
        ("${secret:env:KEY}", {"KEY": ""}, "is empty"),
    ],
)
def test_experience_30_a_missing_key_is_named_as_the_file_writes_it(
    tmp_path: Path, key: str, environ: dict[str, str], state: str
) -> None:
    ran = planned(tmp_path, "http://127.0.0.1:9", key, environ)
    assert ran.code == 1
    assert f"secret {key} {state}" in ran.err
    assert "before you apply" not in ran.err
