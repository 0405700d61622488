"""What has no effect or contradicts is told, and a surprise never ends as a bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.files.loading import load, load_all
from tests.support.cli import write

EXPORT = """\
  lake:
    project: web
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {}}
"""
PROJECT = "projects:\n  web: {name: Web}\n"
FILES = {"reconciler.yaml": "version: 1\n", "a.yaml": f"{PROJECT}batch_exports:\n{EXPORT}"}
ENVIRONMENTS = "version: 1\nenvironments: {a: {}, b: {}}\n"


def told(folder: Path, files: dict[str, str]) -> tuple[Diagnostic, ...]:
    return load_all(write(folder, files), environ={})


def codes(found: tuple[Diagnostic, ...]) -> list[tuple[str, str]]:
    return [(each.code, str(each.at)) for each in found]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("defaults: {batch_exports: {model: events}}", ("unknown-field", "reconciler.yaml:3:12")),
        ("defaults: {project: {timezon: UTC}}", ("unknown-field", "reconciler.yaml:3:22")),
        ("defaults: {project: {environments: [a]}}", ("not-a-default", "reconciler.yaml:3:22")),
        ("defaults: {project: {overrides: {}}}", ("not-a-default", "reconciler.yaml:3:22")),
        ("defaults: {project: {id: 4}}", ("not-a-default", "reconciler.yaml:3:22")),
        ("default: c", ("unknown-environment", "reconciler.yaml:3:10")),
    ],
)
def test_what_the_workspace_says_in_vain_is_told(
    tmp_path: Path, added: str, expected: tuple[str, str]
) -> None:
    files = {**FILES, "reconciler.yaml": f"{ENVIRONMENTS}{added}\n"}
    assert expected in codes(told(tmp_path, files))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("name: Lake", "name: Lake\n    overrides: {a: {environments: [b]}}", "not-an-override"),
        (
            "name: Lake",
            "name: Lake\n    environments: [a]\n    overrides: {b: {paused: true}}",
            "no-effect",
        ),
        ("name: Lake", "name: ' '", "out-of-range"),
        ("name: Lake", "name: Lake\n    offset_hour: 3", "does-not-apply"),
        ("interval: hour", "interval: day\n    offset_day: 3", "does-not-apply"),
        ("name: Lake", "name: Lake\n    primary_key: [uuid]", "does-not-apply"),
        (
            "type: NoOp, config: {}}",
            "type: HTTP, config: {url: https://u}}\n    model: persons",
            "does-not-apply",
        ),
        ("type: NoOp, config: {}", "type: S3", "missing-field"),
        ("type: NoOp, config: {}", "type: S3, config: null", "missing-field"),
        ("{name: Web}", "{name: Web, state: absent}", "absent-parent"),
        ("{name: Web}", "{name: Web, timezone: localtime}", "unknown-zone"),
    ],
)
def test_what_contradicts_is_told(tmp_path: Path, old: str, new: str, code: str) -> None:
    assert old in FILES["a.yaml"]
    files = {"reconciler.yaml": ENVIRONMENTS, "a.yaml": FILES["a.yaml"].replace(old, new)}
    assert [each.code for each in told(tmp_path, files)] == [code]


IGNORED = "lifecycle: {ignore_changes: [PATH]}"


@pytest.mark.parametrize(
    ("path", "tag", "is_known"),
    [
        ("destination.config", "NoOp", True),
        ("destination.integration", "NoOp", True),
        # Defaults are for exports of several types.
        ("destination.config.prefix", "NoOp", True),
        ("destination.config.prefx", "NoOp", False),
        ("destination.confg.prefix", "NoOp", False),
        ("destination.integratin", "NewLake", False),
        # Any field of a type that is newer than the program, and any key of a value.
        ("destination.config.prefx", "NewLake", True),
        ("hogql_modifiers.new", "NoOp", True),
    ],
)
def test_a_path_to_ignore_is_that_of_a_field(
    tmp_path: Path, path: str, tag: str, is_known: bool
) -> None:
    text = f"{EXPORT}    {IGNORED.replace('PATH', path)}\n".replace("NoOp", tag)
    files = {**FILES, "a.yaml": f"{PROJECT}batch_exports:\n{text}"}
    assert ("unknown-field" in dict(codes(told(tmp_path, files)))) is not is_known


def test_a_field_is_ignored_under_each_of_its_names(tmp_path: Path) -> None:
    text = f"{EXPORT}    {IGNORED.replace('PATH', 'hogql_query')}\n"
    files = {**FILES, "a.yaml": f"{PROJECT}batch_exports:\n{text}"}
    desired = load(write(tmp_path, files), environment=None, environ={}).desired
    (lake,) = (item for item in desired.resources.values() if item.address.key == "lake")
    assert lake.lifecycle.ignore_changes == ("sql_query",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("interval: hour", "interval: day\n    offset_hour: 3"),
        ("interval: hour", "interval: week\n    offset_hour: 3\n    offset_day: 2"),
        ("name: Lake", "name: Lake\n    offset_hour: null"),
        ("{name: Web}", "{name: Web, session_recording_sample_rate: '0.30'}"),
        ("type: NoOp, config: {}", "type: NoOp"),
        ("project: web", "project: {name: Other}"),
    ],
)
def test_what_goes_together_is_not_told(tmp_path: Path, old: str, new: str) -> None:
    assert old in FILES["a.yaml"]
    assert told(tmp_path, {**FILES, "a.yaml": FILES["a.yaml"].replace(old, new)}) == ()


@pytest.mark.parametrize("rate", [".5.", "nan", "-nan", "Infinity", "1e999", "sNaN", "0.123", "-1"])
def test_no_sample_rate_is_too_odd(tmp_path: Path, rate: str) -> None:
    text = PROJECT.replace("Web", f"Web, session_recording_sample_rate: '{rate}'")
    found = told(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    assert [each.code for each in found] == ["bad-rate"]


@pytest.mark.parametrize("parent", ["{id: 7}", "{name: Web}"])
def test_names_clash_however_the_parent_is_named(tmp_path: Path, parent: str) -> None:
    twin = EXPORT.replace("lake", "twin").replace("project: web", f"project: {parent}")
    files = {
        "reconciler.yaml": "version: 1\n",
        "a.yaml": FILES["a.yaml"].replace("{name: Web}", "{name: Web, id: 7}") + twin,
    }
    (clash,) = told(tmp_path, files)
    assert clash.code == "same-name"
    assert [str(mark) for mark, _ in clash.related] == ["a.yaml:6:11"]


def test_a_parent_is_replaced_and_not_merged(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": "version: 1\ndefaults: {batch_export: {project: {name: Web}}}\n",
        "a.yaml": "batch_exports:\n" + EXPORT.replace("project: web", "project: {id: 7}"),
    }
    found = load(write(tmp_path, files), environment=None, environ={})
    (resource,) = found.desired.in_order()
    assert str(resource.parent) == "id 7"


def test_a_mistake_in_a_variable_is_told_where_the_variable_stands(tmp_path: Path) -> None:
    files = {
        **FILES,
        "reconciler.yaml": 'version: 1\nvars:\n  x: "${var:typo}"\n  y: {z: ["${var:y}"]}\n',
    }
    files["a.yaml"] = files["a.yaml"].replace(
        "name: Lake", 'name: "a ${var:x}"\n    sql_query: "${var:y}"'
    )
    found = codes(told(tmp_path, files))
    assert ("unknown-variable", "reconciler.yaml:3:6") in found
    assert ("variable-cycle", "reconciler.yaml:4:11") in found


def test_what_an_editor_adds_to_a_file_is_not_its_text(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "q.sql").write_bytes(b"\xef\xbb\xbfselect 1\r\nfrom x\r\n")
    text = FILES["a.yaml"].replace("name: Lake", "name: Lake\n    sql_query: ${file:q.sql}")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    found = load(tmp_path, environment=None, environ={})
    queries = [each.spec.get("sql_query") for each in found.desired.in_order()]
    assert queries == ["select 1\nfrom x", None]


def test_a_default_of_a_secret_is_refused_and_not_told(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": "version: 1\n"
        'vars: {k: "${secret:env:T:-hunter2}"}\n'
        "environments: {a: {api_key: '${env:K:-hunter2}'}}\n",
        "a.yaml": PROJECT
        + "batch_exports:\n"
        + EXPORT.replace("NoOp, config: {}", 'HTTP, config: {url: u, token: "${var:k}"}'),
    }
    with pytest.raises(InvalidConfiguration) as refused:
        load(write(tmp_path, files), environment=None, environ={})
    found = refused.value.diagnostics
    assert [each.code for each in found if each.at.line < 4].count("bad-reference") == 2
    assert "hunter2" not in repr(found)
