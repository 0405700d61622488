"""Each field of a resolved resource knows where it comes from, and shows no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.commands.show import resolved
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.model.redaction import masked_in
from reconciler.model.resource import PublicField, PublicResource
from reconciler.model.values import path_text
from tests.support.cli import write
from tests.support.reports import written
from tests.support.worlds import NOW

POSTGRES = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination:
      type: Postgres
      config: CONFIG
"""


def show(
    folder: Path,
    files: dict[str, str],
    address: str = "batch_export.lake",
    environ: dict[str, str] | None = None,
) -> PublicResource:
    runtime = Runtime(environ=environ or {}, now=lambda: NOW)
    resource, _ = resolved(Workspace(write(folder, files), None, runtime=runtime), address)
    return masked_in(resource, runtime.mask)


def by_name(found: PublicResource) -> dict[str, PublicField]:
    return {path_text(each.path): each for each in found.fields}


@pytest.mark.parametrize("of_type", ["Postgres", "Kafka"])
def test_a_literal_secret_is_hidden_on_every_layer(tmp_path: Path, of_type: str) -> None:
    """Also in a type that no schema describes, by the names of its fields."""
    files = {
        "reconciler.yaml": """\
version: 1
policy: {allow_literal_secrets: true}
vars: {word: sesame-two}
defaults: {batch_export: {destination: {config: {password: sesame-one, user: "${secret:env:U}"}}}}
environments: {staging: {}}
env: [SET, X]
secrets: [U]
""",
        "a.yaml": POSTGRES.replace("Postgres", of_type).replace(
            "CONFIG",
            '{host: h, database: d, user: "sesame-three-${env:X:-sesame-four}",'
            ' password: "${var:word}"}\n    overrides: {staging: {destination: {config:'
            ' {user: "${env:SET}"}}}}',
        ),
    }
    found = show(tmp_path, files, environ={"SET": "sesame-five"})
    text = written("resolved", "text", found)
    assert "sesame" not in text + written("resolved", "json", found)
    assert "${env:SET} from the environment" in text
    config = by_name(found)
    password, user = config["destination.config.password"], config["destination.config.user"]
    assert password.value == user.value == "(literal secret)"
    assert password.written == "${var:word}"
    assert [each.written for each in password.overrides] == ["(literal secret)"]
    assert user.written == "${env:SET}"
    assert [each.written for each in user.overrides] == ["(literal secret)", "${secret:env:U}"]


def test_a_variable_that_is_a_mapping_gives_its_place_to_all_below_it(tmp_path: Path) -> None:
    settings = 'vars: {host: "db.${env:ZONE}", where: {host: "${var:host}", database: d}}'
    files = {
        "reconciler.yaml": f"version: 1\n{settings}\nenv: [ZONE]\n",
        "a.yaml": POSTGRES.replace("CONFIG", '"${var:where}"'),
    }
    host = by_name(show(tmp_path, files, environ={"ZONE": "us"}))["destination.config.host"]
    assert (host.value, host.written, host.origin.line) == ("db.us", "${var:where}", 8)
    told = [(each.reference, each.origin.layer) for each in host.references]
    assert {("${var:where}", "vars"), ("${env:ZONE}", "environment")} <= {*told}


def test_odd_text_can_not_forge_a_line(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": "version: 1\n",
        "a.yaml": 'projects:\n  web: {name: "a\\n# b\\e[31m\\u202e", '
        'app_urls: ["x: #y"], modifiers: {"k: v\\n": 1.5, e: 0.00001}}\n',
    }
    drawn = written("resolved", "text", show(tmp_path, files, "web"))
    assert '    name: "a\\n# b\\u001b[31m\\u202e"' in drawn
    assert '      "k: v\\n": 1.5' in drawn
    assert '["x: #y"]' in drawn
    assert "e: 0.00001 " in drawn
