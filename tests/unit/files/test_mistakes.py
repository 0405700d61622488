"""What is wrong, without effect or contradicts is told once; what goes together is not told.

The corpus has the most common mistakes with their messages; here are the edges of each rule.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.diagnostics import Level
from reconciler.files.loading import load_at
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import ParsedFiles
from reconciler.model.settings import Readable
from tests.support.workspaces import LAKE, PROJECT, VERSION, codes, lake, loaded, problems, s3, told

ENVIRONMENTS = f"{VERSION}environments: {{a: {{}}, b: {{}}}}\n"
VARIABLES = f"{VERSION}env: [A]\nsecrets: [X, Z]\n"


def http(more: str = "", url: str = "'https://u'") -> str:
    return f"{{type: HTTP, config: {{url: {url}{more}}}}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lake(overrides="{a: {environments: [b]}}"), "not-an-override"),
        (lake(destination=http(), model="persons"), "does-not-apply"),
        (lake(destination="{type: S3, config: null}"), "missing-field"),
        (PROJECT.replace("Web", "Web, timezone: localtime"), "unknown-zone"),
        (lake(id="99999999999999999999"), "ambiguous-number"),
        (lake(destination="{type: NoOp, config: no}"), "ambiguous-boolean"),
        (lake(destination=http(", token: 0o1")), "ambiguous-number"),
        (lake(destination='{type: "a\\0", config: {}}'), "control-character"),
        (lake(lifecycle="{ignore_changes: [5]}"), "wrong-type"),
        (lake(destination=http(url="'https:eu.i.posthog.com'")), "bad-url"),
        (lake(destination=s3(", endpoint_url: minio.example.com")), "bad-url"),
        *(
            (lake(destination=s3(prefix=prefix)), "unknown-placeholder")
            for prefix in ("{}", "{0}", "{year", "{{year}}}")
        ),
        *(
            (PROJECT.replace("Web", f"Web, session_recording_sample_rate: '{rate}'"), "bad-rate")
            for rate in (".5.", "sNaN", "0.123", "-1")
        ),
        ("projects: {web: {name: Web, '': {a: b}}}\n", "unknown-field"),
        ("projects: {w: {name: W, state: abset, lifecycle: {protect: true}}}\n", "not-allowed"),
    ],
)
def test_configuration_8_what_is_wrong_is_told_once(
    tmp_path: Path, text: str, expected: str
) -> None:
    # A key without text did not merge with defaults.
    settings = f"{ENVIRONMENTS}defaults: {{project: {{timezone: UTC}}}}\n"
    assert codes(told(tmp_path, text, settings)) == expected.split()


def test_what_the_workspace_says_in_vain_is_told(tmp_path: Path) -> None:
    settings = f"{ENVIRONMENTS}default: ''\npolicy: {{deny: [histry-lost]}}\n"
    assert [(each.code, str(each.at)) for each in told(tmp_path, PROJECT, settings)] == [
        ("unknown-environment", "reconciler.yaml:3:10"),
        ("not-allowed", "reconciler.yaml:4:17"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        lake(interval="week", offset_hour="3", offset_day="2"),
        lake(offset_hour="null"),
        lake(project="{name: Other}"),
        PROJECT.replace("Web", "Web, session_recording_sample_rate: '0.30'"),
        lake(destination=s3(prefix="{data_interval_end}")),
    ],
)
def test_what_goes_together_is_not_told(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == ()


@pytest.mark.parametrize(
    ("field", "value", "fix"),
    [
        ("destination", "{type: s3-compatible}", "write 'S3Compatible'"),
        ("interval", "daily", "write 'day'"),
    ],
)
def test_a_value_that_differs_only_in_case_is_an_error(
    tmp_path: Path, field: str, value: str, fix: str
) -> None:
    (problem,) = problems(tmp_path, lake(**{field: value}))
    assert (problem.code, problem.level, problem.hint) == ("misspelt-value", Level.ERROR, fix)


def test_a_value_that_newer_servers_may_know_is_a_warning(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, lake(interval="month"))
    assert (problem.code, problem.level) == ("unknown-value", Level.WARNING)
    (problem,) = problems(tmp_path, lake(interval="1"))
    assert problem.hint == "known: hour, day, week, every 5 minutes, every 15 minutes"


@pytest.mark.parametrize(
    ("path", "tag", "is_known"),
    [
        # Defaults are for exports of several types.
        ("destination.config.prefix", "NoOp", True),
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
    fields = {"lifecycle": f"{{ignore_changes: [{path}]}}", "destination": f"{{type: {tag}}}"}
    assert ("unknown-field" in codes(told(tmp_path, lake(**fields)))) is not is_known


def test_a_field_is_ignored_under_each_of_its_names(tmp_path: Path) -> None:
    text = lake(lifecycle="{ignore_changes: [hogql_query]}")
    resource = loaded(tmp_path, text).desired.resources[LAKE]
    assert resource.lifecycle.ignore_changes == ("sql_query",)


def test_x4_resources_of_one_environment_are_not_compared(tmp_path: Path) -> None:
    """X4: "differs between a and a", and a name that moves to another key in both."""
    service = "{base_url: 'https://eu.posthog.com', organization: 0188461e}"
    settings = f"version: 1\nenvironments:\n  a: {service}\n  b: {service}\n"
    twice = f"{PROJECT}  two: {{name: Web, timezone: Europe/Berlin}}\n"
    assert codes(told(tmp_path, twice, settings)) == ["same-name"]
    moved = f"{PROJECT.replace('Web', 'Web, state: absent')}  two: {{name: Web}}\n"
    assert told(tmp_path, moved, settings) == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "hogql", "hogql_modifiers": "{a: [{b: 'x${secret:env:X}'}]}"},
        {"model": "hogql", "primary_key": "['${secret:env:X}']"},
        {"filters": "[{type: event, value: '${secret:env:X}'}]"},
    ],
)
def test_a_secret_deep_inside_a_plain_field_is_told(tmp_path: Path, fields: dict[str, str]) -> None:
    found = codes(told(tmp_path, lake(**fields), VARIABLES))
    assert set(found) - {"feature-flag"} == {"secret-in-plain-field"}


def test_secrets_of_a_type_that_is_not_known_are_no_mistake(tmp_path: Path) -> None:
    body = "{type: Kafka, config: {password: '${secret:env:X}', nested: {a: '${secret:env:Z}'}}}"
    assert codes(problems(tmp_path, lake(destination=body), VARIABLES)) == ["unknown-value"]
    # Another name of a field makes no difference.
    text = lake(destination="{type: Kafka, config: {password: x}}", hogql_query="SELECT 1")
    assert codes(problems(tmp_path, text)) == ["unknown-value", "literal-secret"]


def test_a_default_of_a_secret_is_refused_and_not_told(tmp_path: Path) -> None:
    settings = (
        'version: 1\nvars: {k: "${secret:env:T:-hunter2}"}\n'
        "environments: {a: {api_key: '${env:K:-hunter2}'}}\n"
    )
    found = problems(tmp_path, lake(destination=http(', token: "${var:k}"')), settings)
    assert [each.code for each in found if each.at.line < 4].count("bad-reference") == 2
    assert "hunter2" not in repr(found)


def test_a_snippet_never_shows_a_secret(tmp_path: Path) -> None:
    secret = "hunter2hunter2"
    (tmp_path / "b.yaml").write_text(
        f"batch_exports: {{x: {{private_key: |\n  {secret}\n\t{secret}\n"
    )
    (tmp_path / "c.yaml").write_text("password: 0123\npassword: 0123\n")
    settings = f"version: 1\nenvironments: {{a: {{api_key: phx_{secret}}}}}\n"
    found = problems(tmp_path, lake(destination=http(f", tokn: 1, token: {secret}")), settings)
    assert secret not in repr(found)
    assert "0123" not in repr(found)
    assert {"literal-secret", "unknown-field"} <= {*codes(found)}


@pytest.mark.parametrize("field", [{"interval": "Hour"}, {"destination": http(url="u")}])
def test_a_base_with_a_mistake_that_was_a_warning_can_be_read(
    tmp_path: Path, field: dict[str, str]
) -> None:
    assert Level.ERROR in {problem.level for problem in problems(tmp_path, lake(**field))}
    source, parsed = FolderSource(tmp_path), ParsedFiles()
    at_base = load_at(source, environment="default", environ={}, parsed=parsed, trusted=Readable())
    assert LAKE in at_base.resources
