"""References in files: typed values, `${unset}`, and messages that name the true cause."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.files.loading import Loaded, load, load_all, load_at
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import ParsedFiles
from reconciler.model.settings import Readable
from reconciler.model.values import Address
from tests.support.cli import reconciler, write

LAKE = Address("batch_export", "lake")
WORKSPACE = """\
version: 1
env: [DASHBOARD, FLAG, NAME, PORT]
vars: {bucket: acme, names: [a], port: "${env:PORT}", quoted: "5432"}
"""
EXPORT = """\
projects: {web: {name: Web}}
batch_exports:
  lake:
    project: web
    name: NAME
    interval: hour
    destination: DESTINATION
"""
POSTGRES = "{type: Postgres, config: {host: h, database: d, port: PORT}}"
FILE = {"port.txt": "5433\n"}


def export(name: str = "Lake", destination: str = "{type: NoOp}", more: str = "") -> str:
    text = EXPORT.replace("NAME", name).replace("DESTINATION", destination)
    return f"{text}    {more}\n" if more else text


def loaded(
    folder: Path, resources: str, environ: Mapping[str, str] | None = None, own: str = WORKSPACE
) -> Loaded:
    write(folder, {"reconciler.yaml": own, "a.yaml": resources, **FILE})
    return load(folder, environment=None, environ=environ or {})


def fields(folder: Path, resources: str, environ: Mapping[str, str] | None = None) -> Any:
    return loaded(folder, resources, environ).desired.resources[LAKE].spec


def problems(
    folder: Path, resources: str, environ: Mapping[str, str] | None = None, own: str = WORKSPACE
) -> list[Diagnostic]:
    """Return what is wrong for one environment, without unused variables."""
    try:
        diagnostics = loaded(folder, resources, environ, own).diagnostics
    except InvalidConfiguration as invalid:
        diagnostics = invalid.diagnostics
    return [problem for problem in diagnostics if problem.code != "unused-variable"]


def problem_in(folder: Path, resources: str, **options: Any) -> Diagnostic:
    (problem,) = problems(folder, resources, **options)
    return problem


def marked(problem: Diagnostic, folder: Path) -> str:
    """Return the characters that the caret underlines."""
    assert problem.at is not None
    line = (folder / problem.at.file).read_text(encoding="utf-8").splitlines()[problem.at.line - 1]
    return line[problem.at.column - 1 : problem.at.column - 1 + problem.at.length]


@pytest.mark.parametrize("written", ["${env:PORT}", "${var:port}", "${file:port.txt}"])
def test_text_from_outside_is_a_number_where_the_schema_wants_one(
    tmp_path: Path, written: str
) -> None:
    spec = fields(
        tmp_path, export(destination=POSTGRES.replace("PORT", f'"{written}"')), {"PORT": "5433"}
    )
    assert spec["destination"]["config"]["port"] == 5433
    assert type(spec["destination"]["config"]["port"]) is int


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("TRUE", True)])
def test_text_from_outside_is_a_boolean_where_the_schema_wants_one(
    tmp_path: Path, text: str, value: bool
) -> None:
    assert fields(tmp_path, export(more="paused: ${env:FLAG}"), {"FLAG": text})["paused"] is value
    default = export(more=f"paused: ${{env:FLAG:-{text}}}")
    assert fields(tmp_path, default)["paused"] is value


def test_text_from_outside_stays_text_where_the_schema_takes_text(tmp_path: Path) -> None:
    name = fields(tmp_path, export(name='"${env:NAME}"'), {"NAME": "2026"})["name"]
    assert name == "2026"
    assert type(name) is str
    unknown_type = '{type: Kafka, config: {retries: "${env:PORT}", topic: "t-${env:PORT}"}}'
    spec = fields(tmp_path, export(destination=unknown_type), {"PORT": "3"})
    assert spec["destination"]["config"] == {"retries": "3", "topic": "t-3"}
    assert {type(value) for value in spec["destination"]["config"].values()} == {str}


@pytest.mark.parametrize("port", ["abc", "", " 5432", "5432.0", "0x10", "5_432", "1" * 30])
def test_a_variable_that_is_not_a_number_is_reported_with_its_name(
    tmp_path: Path, port: str
) -> None:
    resources = export(destination=POSTGRES.replace("PORT", '"${env:PORT}"'))
    problem = problem_in(tmp_path, resources, environ={"PORT": port})
    assert problem.code == "wrong-type"
    assert f"a whole number, not '{port}' from ${{env:PORT}}" in problem.message
    assert "quotes" not in (problem.hint or "")


@pytest.mark.parametrize("flag", ["1", "0", "yes", "no", ""])
def test_a_variable_is_a_boolean_only_as_true_or_false(tmp_path: Path, flag: str) -> None:
    resources = export(more="lifecycle: {protect: '${env:FLAG}'}")
    problem = problem_in(tmp_path, resources, environ={"FLAG": flag})
    assert (problem.code, problem.hint) == ("wrong-type", "set it to true or false")


def test_a_variable_of_another_machine_may_be_a_number_but_not_a_list(tmp_path: Path) -> None:
    port = export(destination=POSTGRES.replace("PORT", '"${env:PORT}"'))
    write(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": port})
    codes = {problem.code for problem in load_all(tmp_path, environ={})}
    assert codes == {"unused-variable"}
    write(tmp_path, {"a.yaml": export(more="filters: ${env:PORT}")})
    codes = {problem.code for problem in load_all(tmp_path, environ={})}
    assert "wrong-type" in codes


def test_a_number_of_the_defaults_is_typed_for_import_too(tmp_path: Path) -> None:
    own = WORKSPACE + 'defaults: {batch_export: {offset_hour: "${env:PORT}"}}\n'
    defaults = loaded(tmp_path, "projects: {}\n", {"PORT": "5"}, own).defaults_in("new.yaml")
    assert defaults["batch_export"] == {"offset_hour": 5}


def test_show_resolved_prints_the_typed_value(tmp_path: Path) -> None:
    resources = export(destination=POSTGRES.replace("PORT", '"${env:PORT}"'))
    write(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": resources})
    ran = reconciler("show", "lake", "-C", tmp_path, environ={"PORT": "5433"})
    line = next(line for line in ran.out.splitlines() if "port:" in line)
    assert "port: 5433 " in line
    assert "${env:PORT} from the environment" in line


def test_configuration_7_an_environment_variable_in_a_number_field(tmp_path: Path) -> None:
    resources = 'projects: {web: {name: Web, primary_dashboard: "${env:DASHBOARD}"}}\n'
    found = loaded(tmp_path, resources, {"DASHBOARD": "12"})
    assert found.desired.resources[Address("project", "web")].spec["primary_dashboard"] == 12


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("5432", "without quotes"),
        ("${var:quoted}", "the variable"),
        ("5${env:PORT}", "as the whole value"),
    ],
)
def test_configuration_7_the_hint_names_quotes_only_where_there_are_some(
    tmp_path: Path, written: str, said: str
) -> None:
    resources = export(destination=POSTGRES.replace("PORT", f'"{written}"'))
    problem = problem_in(tmp_path, resources, environ={"PORT": "432"})
    assert problem.code == "wrong-type"
    assert said in (problem.hint or "")


@pytest.mark.parametrize(
    ("written", "message", "hint", "caret"),
    [
        ('"${env:NAME:-{a}}"', "must not contain {", "${var:NAME}", "${env:NAME:-{"),
        ("${ var:bucket }", "unknown reference", "did you mean ${var:bucket}?", None),
        ("${var.bucket}", "unknown reference", "did you mean ${var:bucket}?", None),
        ("${vars.bucket}", "unknown reference", "did you mean ${var:bucket}?", None),
        ("${bucket}", "unknown reference", "did you mean ${var:bucket}?", None),
        ("${env.NAME}", "unknown reference", "did you mean ${env:NAME}?", None),
        ("${secret.env.NAME}", "unknown reference", "did you mean ${secret:env:NAME}?", None),
        ("${Unset}", "unknown reference", "did you mean ${unset}?", None),
        ("a ${var:bucket} ${var:nope}", "unknown variable 'nope'", "variables", "${var:nope}"),
        ("a $${var:nope} ${var:nope}", "unknown variable 'nope'", "variables", "${var:nope}"),
        ('"a\n      b ${env:nope}"', "not listed", "nope", "${env:nope}"),
    ],
)
def test_configuration_7_mistakes_in_references_name_the_cause_and_the_fix(
    tmp_path: Path, written: str, message: str, hint: str, caret: str | None
) -> None:
    problem = problem_in(tmp_path, export(name=written))
    assert message in problem.message
    assert hint in (problem.hint or "")
    assert marked(problem, tmp_path) == (caret or written)


def test_configuration_7_the_caret_is_at_the_reference_in_a_block(tmp_path: Path) -> None:
    query = "sql_query: |\n      SELECT ${var:bucket},\n        ${var:colum} FROM events"
    problem = problem_in(tmp_path, export(more=query))
    assert marked(problem, tmp_path) == "${var:colum}"


@pytest.mark.parametrize("environments", ["${var:names}", "['${var:bucket}']"])
def test_configuration_7_environments_take_no_references(tmp_path: Path, environments: str) -> None:
    problem = problem_in(tmp_path, export(more=f"environments: {environments}"))
    assert "references are not filled in here" in (problem.hint or "")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("out", "a link out of the workspace"),
        ("folder", "a folder"),
        ("broken", "a broken link"),
        ("hidden", "a link to a hidden file"),
        ("nothing", "no such file"),
    ],
)
def test_configuration_7_a_file_that_cannot_be_read_is_named_for_what_it_is(
    tmp_path: Path, path: str, reason: str
) -> None:
    (tmp_path / "secret").write_text("s", encoding="utf-8")
    folder = write(tmp_path / "w", {".env": "s", "folder/query.sql": "q"})
    targets = {"out": tmp_path / "secret", "broken": folder / "none", "hidden": folder / ".env"}
    for name, target in targets.items():
        (folder / name).symlink_to(target)
    problem = problem_in(folder, export(name=f"${{file:{path}}}"))
    assert problem.code == "unreadable-file"
    assert reason in problem.message


@pytest.mark.parametrize(
    ("resources", "number"),
    [
        ("projects: {web: {name: null}, app: {name: null}}\n", 2),
        ("projects: {web: {name: 5}, app: {name: 5}}\n", 2),
        ("projects: {web: {name: Web, id: [1]}, app: {name: App, id: [1]}}\n", 2),
        (
            """projects:
  web: {name: Web, lifecycle: {renamed_from: [null]}}
  app: {name: App, lifecycle: {renamed_from: [null]}}
""",
            2,
        ),
        ("projects: {web: {name: Web, state: abset, lifecycle: {protect: true}}}\n", 1),
        (export(more="lifecycle: {ignore_changes: [5]}"), 1),
        (
            EXPORT.replace("project: web", "project: 5")
            .replace("NAME", "Lake")
            .replace("DESTINATION", "{type: NoOp}"),
            1,
        ),
    ],
)
def test_configuration_8_a_value_of_the_wrong_type_has_no_further_mistakes(
    tmp_path: Path, resources: str, number: int
) -> None:
    codes = [problem.code for problem in problems(tmp_path, resources)]
    assert len(codes) == number
    assert set(codes) <= {"wrong-type", "not-allowed"}


def test_configuration_2_variables_that_repeat_others_are_bounded(tmp_path: Path) -> None:
    doubled = "".join(f"  v{n}: ${{var:v{n - 1}}}${{var:v{n - 1}}}\n" for n in range(1, 40))
    own = f"version: 1\nvars:\n  v0: abc\n{doubled}"
    assert problem_in(tmp_path, export(name="${var:v39}"), own=own).code == "too-large-value"
    spec = loaded(tmp_path, export(more="sql_query: ${var:v15}"), own=own).desired.resources[LAKE]
    assert len(spec.spec["sql_query"]) == 3 * 2**15


LAYERS = """\
version: 1
environments: {staging: {}, production: {}}
default: staging
defaults:
  batch_export:
    timezone: UTC
    lifecycle: {protect: true}
    destination: {type: Postgres, config: {host: h, port: 5432, schema: s}}
"""
UNSETTING = """\
projects: {web: {name: Web}}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    timezone: ${unset}
    lifecycle: ${unset}
    destination: {config: {database: d, schema: "${unset}"}}
    overrides:
      staging: {destination: {config: {port: "${unset}"}}}
      production: {timezone: Europe/Berlin}
"""


def resource_in(folder: Path, environment: str) -> Any:
    write(folder, {"reconciler.yaml": LAYERS, "a.yaml": UNSETTING})
    found = load(folder, environment=environment, environ={})
    assert found.diagnostics == ()
    return found.desired.resources[LAKE]


def test_configuration_11_unset_leaves_a_field_of_a_lower_layer_unmanaged(tmp_path: Path) -> None:
    staging, production = (resource_in(tmp_path, name) for name in ("staging", "production"))
    assert staging.spec["destination"]["config"] == {"host": "h", "database": "d"}
    assert "timezone" not in staging.spec
    assert not staging.lifecycle.protect
    assert production.spec["destination"]["config"] == {"host": "h", "port": 5432, "database": "d"}
    assert production.spec["timezone"] == "Europe/Berlin"


def test_show_resolved_says_where_a_field_is_unset(tmp_path: Path) -> None:
    resource = resource_in(tmp_path, "staging")
    ran = reconciler("show", "lake", "-C", tmp_path, environ={})
    lines = [line.split("#") for line in ran.out.splitlines() if "${unset}" in line]
    assert [(field.strip(), origin.strip()) for field, origin in lines] == [
        ("timezone: ${unset}", "a.yaml:7 resource; overrides UTC (reconciler.yaml:6 defaults)"),
        (
            "port: ${unset}",
            "a.yaml:11 override staging; overrides 5432 (reconciler.yaml:8 defaults)",
        ),
        ("schema: ${unset}", "a.yaml:9 resource; overrides s (reconciler.yaml:8 defaults)"),
        (
            "protect: false",
            "a.yaml:8 resource; written as ${unset}; overrides true (reconciler.yaml:7 defaults)",
        ),
    ]
    again = write(tmp_path / "again", {"reconciler.yaml": LAYERS, "a.yaml": ran.out})
    write(again, {"b.yaml": "projects: {web: {name: Web}}\n"})
    copied = load(again, environment="staging", environ={}).desired.resources[LAKE]
    assert (copied.spec, copied.lifecycle) == (resource.spec, resource.lifecycle)


@pytest.mark.parametrize(
    ("resources", "own", "code"),
    [
        (export(more="model: ${unset}"), WORKSPACE, "no-effect"),
        (export(more="lifecycle: {renamed_from: ['${unset}']}"), WORKSPACE, "misplaced-unset"),
        (export(name="a ${unset}"), WORKSPACE, "misplaced-unset"),
        (export(name="${var:bucket}"), WORKSPACE.replace("acme", '"${unset}"'), "misplaced-unset"),
        (export(), WORKSPACE + 'defaults: {batch_export: {model: "${unset}"}}\n', "no-effect"),
        (
            export(more="overrides: {default: {interval: '${unset}'}}"),
            WORKSPACE + "environments: {default: {}}\n",
            "missing-field",
        ),
    ],
)
def test_unset_is_reported_where_there_is_nothing_to_unset(
    tmp_path: Path, resources: str, own: str, code: str
) -> None:
    assert problem_in(tmp_path, resources, own=own).code == code


def test_an_escaped_unset_is_text(tmp_path: Path) -> None:
    assert fields(tmp_path, export(name='"$${unset}"'))["name"] == "${unset}"


S3 = '{type: TYPE, config: {bucket_name: b, region: r, prefix: "PREFIX"MORE}}'


def s3(prefix: str = "p/", more: str = "", of_type: str = "S3") -> str:
    body = S3.replace("TYPE", of_type).replace("PREFIX", prefix).replace("MORE", more)
    return export(destination=body)


@pytest.mark.parametrize(
    ("resources", "fix"),
    [
        (s3(of_type="s3"), "write 'S3'"),
        (s3(of_type="s3-compatible"), "write 'S3Compatible'"),
        (s3(more=", file_format: parquet"), "write 'Parquet'"),
        (s3(more=", file_format: json-lines"), "write 'JSONLines'"),
        (s3(more=", compression: GZIP"), "write 'gzip'"),
        (s3(more=", compression: None"), "write null, without quotes"),
        (export().replace("interval: hour", "interval: Hour"), "write 'hour'"),
        (export().replace("interval: hour", "interval: hourly"), "write 'hour'"),
        (export().replace("interval: hour", "interval: daily"), "write 'day'"),
        (
            export().replace("interval: hour", "interval: every-5-minutes"),
            "write 'every 5 minutes'",
        ),
    ],
)
def test_a_value_that_differs_only_in_case_is_an_error(
    tmp_path: Path, resources: str, fix: str
) -> None:
    problem = problem_in(tmp_path, resources)
    assert (problem.code, problem.level.value, problem.hint) == ("misspelt-value", "error", fix)


@pytest.mark.parametrize("interval", ["month", "every 10 minutes"])
def test_a_value_that_newer_servers_may_know_is_a_warning(tmp_path: Path, interval: str) -> None:
    problem = problem_in(tmp_path, export().replace("hour", interval))
    assert (problem.code, problem.level.value) == ("unknown-value", "warning")


def test_a_number_for_an_enumeration_lists_the_known_values(tmp_path: Path) -> None:
    problem = problem_in(tmp_path, export().replace("interval: hour", "interval: 1"))
    assert problem.hint == "known: hour, day, week, every 5 minutes, every 15 minutes"


@pytest.mark.parametrize(
    "resources",
    [
        export(destination="{type: HTTP, config: {url: eu.i.posthog.com/batch/}}"),
        export(destination="{type: HTTP, config: {url: 'https:eu.i.posthog.com'}}"),
        s3(more=", endpoint_url: minio.example.com"),
    ],
)
def test_an_address_without_a_scheme_is_an_error(tmp_path: Path, resources: str) -> None:
    assert problem_in(tmp_path, resources).code == "bad-url"


@pytest.mark.parametrize("prefix", ["{yaer}/", "{}", "{0}", "{year", "year}", "{{year}}}"])
def test_braces_in_a_prefix_that_make_runs_fail_are_reported(tmp_path: Path, prefix: str) -> None:
    assert problem_in(tmp_path, s3(prefix)).code == "unknown-placeholder"


@pytest.mark.parametrize(
    "prefix", ["{year}/{month}/{day}/{hour}", "{{a}}/{table}", "{data_interval_end}"]
)
def test_placeholders_of_the_service_are_fine(tmp_path: Path, prefix: str) -> None:
    assert problems(tmp_path, s3(prefix)) == []


@pytest.mark.parametrize(
    "mistake",
    ["interval: Hour", "interval: hour\n    destination: {type: HTTP, config: {url: u}}"],
)
def test_a_base_with_a_mistake_that_was_a_warning_can_be_read(tmp_path: Path, mistake: str) -> None:
    text = export().replace("    destination: {type: NoOp}\n", "") if "url" in mistake else export()
    text = text.replace("interval: hour", mistake)
    assert "error" in {problem.level.value for problem in problems(tmp_path, text)}
    at_base = load_at(
        FolderSource(tmp_path),
        environment="default",
        environ={},
        parsed=ParsedFiles(),
        trusted=Readable(),
    )
    assert LAKE in at_base.resources
