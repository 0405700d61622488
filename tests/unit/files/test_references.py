"""References in files: typed values, `${unset}`, and messages that name the true cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import write
from tests.support.workspaces import LAKE, VERSION, codes, lake, loaded, problems, told

SETTINGS = """\
version: 1
env: [DASHBOARD, FLAG, NAME, PORT]
vars: {bucket: acme, names: [a], port: "${env:PORT}", quoted: "5432"}
"""
KAFKA = "{type: Kafka, config: {retries: '${env:PORT}', topic: 't${env:PORT}'}}"
HTTP = "{type: HTTP, config: {url: https://u, token: 'TOKEN'}}"


def postgres(port: str) -> str:
    return f'{{type: Postgres, config: {{host: h, database: d, port: "{port}"}}}}'


@pytest.mark.parametrize(
    ("fields", "outside", "path", "value"),
    [
        ({"destination": postgres("${var:port}")}, "5433", "destination config port", 5433),
        ({"destination": postgres("${file:port.txt}")}, "x", "destination config port", 5434),
        ({"paused": "${env:FLAG}"}, "False", "paused", False),
        ({"paused": "${env:FLAG:-TRUE}"}, None, "paused", True),
        ({"name": "'${env:NAME}'"}, "2026", "name", "2026"),
        ({"name": "$${x} $y"}, None, "name", "${x} $y"),
        ({"name": "'$${unset}'"}, None, "name", "${unset}"),
        ({"destination": KAFKA}, "3", "destination config", {"retries": "3", "topic": "t3"}),
    ],
)
def test_text_from_outside_has_the_type_of_the_schema(
    tmp_path: Path, fields: dict[str, str], outside: str | None, path: str, value: Any
) -> None:
    (tmp_path / "port.txt").write_text("5434\n")
    environ = dict.fromkeys(("NAME", "FLAG", "PORT"), outside) if outside else {}
    found = loaded(tmp_path, lake(**fields), SETTINGS, environ).desired.resources[LAKE].spec
    for part in path.split():
        found = found[part]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("port", ["", " 5432", "5_432"])
def test_a_variable_that_is_not_a_number_is_reported_with_its_name(
    tmp_path: Path, port: str
) -> None:
    text = lake(destination=postgres("${env:PORT}"))
    (problem,) = problems(tmp_path, text, SETTINGS, {"PORT": port})
    assert problem.code == "wrong-type"
    assert f"a whole number, not '{port}' from ${{env:PORT}}" in problem.message
    assert "quotes" not in (problem.hint or "")


@pytest.mark.parametrize(
    ("fields", "value", "code"),
    [
        ({"lifecycle": "{protect: '${env:FLAG}'}"}, "1", "wrong-type"),
        ({"lifecycle": "{protect: '${env:FLAG}'}"}, "", "wrong-type"),
        ({"name": "${env:FLAG}"}, "caf\udce9", "not-text"),
    ],
)
def test_a_variable_is_a_boolean_only_as_true_or_false_and_text(
    tmp_path: Path, fields: dict[str, str], value: str, code: str
) -> None:
    assert codes(problems(tmp_path, lake(**fields), SETTINGS, {"FLAG": value})) == [code]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"destination": postgres("${env:PORT}")}, "unused-variable"),
        ({"filters": "${env:PORT}"}, "wrong-type"),
        (dict.fromkeys(("start_at", "model"), "${env:FLAG}"), "unused-variable"),
        ({"timezone": "x-${env:FLAG}"}, "unused-variable"),
        ({"paused": "${env:FLAG}1"}, "wrong-type"),
        ({"destination": HTTP.replace("TOKEN", "${env:FLAG}")}, "literal-secret"),
    ],
)
def test_what_hangs_on_a_variable_of_another_machine_is_not_judged(
    tmp_path: Path, fields: dict[str, str], expected: str
) -> None:
    assert {*codes(told(tmp_path, lake(**fields), SETTINGS))} == {expected}


def test_a_number_of_the_defaults_is_typed_for_import_too(tmp_path: Path) -> None:
    settings = SETTINGS + 'defaults: {batch_export: {offset_hour: "${env:PORT}"}}\n'
    found = loaded(tmp_path, "projects: {}\n", settings, {"PORT": "5"})
    assert found.defaults_in("new.yaml")["batch_export"] == {"offset_hour": 5}


@pytest.mark.parametrize(
    ("written", "hint"), [("${var:quoted}", "the variable"), ("5${env:PORT}", "as the whole value")]
)
def test_configuration_7_the_hint_names_quotes_only_where_there_are_some(
    tmp_path: Path, written: str, hint: str
) -> None:
    text = lake(destination=postgres(written))
    (problem,) = problems(tmp_path, text, SETTINGS, {"PORT": "432"})
    assert problem.code == "wrong-type"
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("${bucket}", "unknown reference", "did you mean ${var:bucket}?"),
        ("${secret.env.NAME}", "unknown reference", "did you mean ${secret:env:NAME}?"),
        ("${Unset}", "unknown reference", "did you mean ${unset}?"),
        ("${env:NAM}", "variable NAM is not listed", "did you mean 'NAME'? add NAM to the list"),
        ("a $${var:nope} «${var:nope}»", "unknown variable 'nope'", "variables"),
        ("|\n      SELECT ${var:bucket},\n        «${var:colum}» FROM e", "'colum'", "variables"),
    ],
)
def test_configuration_7_mistakes_in_references_name_the_cause_and_the_fix(
    tmp_path: Path, written: str, message: str, hint: str
) -> None:
    caret = written.partition("«")[2].partition("»")[0] or written
    text = lake(sql_query=written.replace("«", "").replace("»", ""))
    (problem,) = problems(tmp_path, text, SETTINGS)
    assert message in problem.message
    assert hint in (problem.hint or "")
    lines = (tmp_path / problem.at.file).read_text(encoding="utf-8").splitlines()
    assert lines[problem.at.line - 1][problem.at.column - 1 :][: problem.at.length] == caret


def test_a_mistake_in_a_variable_is_told_where_the_variable_stands(tmp_path: Path) -> None:
    settings = 'version: 1\nvars:\n  x: "${var:typo}"\n  y: {z: ["${var:y}"]}\n'
    found = told(tmp_path, lake(name='"a ${var:x}"', sql_query='"${var:y}"'), settings)
    places = [(each.code, str(each.at)) for each in found]
    assert ("unknown-variable", "reconciler.yaml:3:6") in places
    assert ("variable-cycle", "reconciler.yaml:4:11") in places


def test_configuration_7_a_file_that_cannot_be_read_is_named_for_what_it_is(tmp_path: Path) -> None:
    folder = write(tmp_path / "w", {".env": "s", "folder/query.sql": "q", "../secret": "s"})
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "hidden").symlink_to(folder / ".env")
    reasons = {
        "out": "a link out of the workspace",
        "folder": "a folder",
        "hidden": "a link to a hidden file",
    }
    for path, reason in reasons.items():
        (problem,) = problems(folder, lake(name=f"${{file:{path}}}"))
        assert problem.code == "unreadable-file"
        assert reason in problem.message


def test_what_an_editor_adds_to_a_file_is_not_its_text(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_bytes(b"\xef\xbb\xbfselect 1\r\nfrom x\r\n")
    found = loaded(tmp_path, lake(sql_query="${file:q.sql}")).desired.resources[LAKE]
    assert found.spec["sql_query"] == "select 1\nfrom x"


@pytest.mark.parametrize(
    ("text", "own", "code"),
    [
        (lake(name="a ${unset}"), "", "misplaced-unset"),
        (lake(name="${var:x}"), 'vars: {x: "${unset}"}', "misplaced-unset"),
        (lake(), 'defaults: {batch_export: {model: "${unset}"}}', "no-effect"),
        (lake(overrides="{a: {interval: '${unset}'}}"), "environments: {a: {}}", "missing-field"),
    ],
)
def test_unset_is_reported_where_there_is_nothing_to_unset(
    tmp_path: Path, text: str, own: str, code: str
) -> None:
    assert codes(problems(tmp_path, text, f"{VERSION}{own}\n")) == [code]
