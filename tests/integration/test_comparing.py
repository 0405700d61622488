"""`compare` and `promote`: two environments of the files, and the edits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.model.schemas import known_schema
from tests.support.cli import Ran, reconciler, write

WORKSPACE = """\
version: 1
secrets: [KEY, STAGING_KEY]
vars: {bucket: acme}
environments:
  staging: {vars: {bucket: acme-staging}}
  production: {vars: {bucket: acme-prod}}
  dev: {}
"""
FILES = {
    "reconciler.yaml": WORKSPACE,
    "exports.yaml": """\
projects:
  web: {name: Web}
  beta: {name: Beta, environments: [staging]}
batch_exports:
  # the lake
  lake:
    project: web
    name: Lake
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: ${var:bucket}
        region: eu-central-1
        prefix: events/
        aws_access_key_id: ${secret:env:KEY}
        aws_secret_access_key: ${secret:env:KEY}
    overrides:
      staging:
        interval: day  # a trial
        destination: {config: {aws_access_key_id: "${secret:env:STAGING_KEY}"}}
      production:
        paused: true
  both:
    project: web
    name: Both
    interval: hour
    destination: {type: NoOp, config: {}}
    overrides: {staging: {interval: day}, production: {interval: week}}
  beta:
    environments: [staging]
    project: beta
    name: Beta
    interval: hour
    destination: {type: NoOp, config: {}}
  old:
    environments: [production, dev]
    project: web
    name: Old
    interval: hour
    destination: {type: NoOp, config: {}}
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def run(folder: Path, command: str, *words: str) -> Ran:
    return reconciler(command, "-C", folder, "--trust-workspace", *words)


def promote(folder: Path, *words: str) -> Ran:
    return run(folder, "promote", "--from", "staging", "--to", "production", *words)


def test_differences_are_apart_from_intended_ones(folder: Path) -> None:
    ran = run(folder, "compare", "staging", "production")
    assert ran.code == 2
    assert ran.out == (
        "Environments staging and production · configuration\n"
        "\n"
        '  ~ batch_export.lake "Lake"\n'
        "      interval  day in staging, hour in production  exports.yaml:20\n"
        "      paused    not set in staging, true in production  exports.yaml:23\n"
        "\n"
        "Only in staging:\n"
        '  + batch_export.beta "Beta"  exports.yaml:30\n'
        '  + project.beta "Beta"  exports.yaml:3\n'
        "\n"
        "Only in production:\n"
        '  + batch_export.old "Old"  exports.yaml:36\n'
        "\n"
        "2 differences in 1 resource, 2 resources only in staging, "
        "1 resource only in production; 3 intended differences (--verbose), 1 equal.\n"
    )
    verbose = run(folder, "compare", "staging", "production", "lake", "--verbose")
    assert (
        "destination.config.bucket_name acme-staging in staging, acme-prod in production"
        " ${var:bucket}"
    ) in " ".join(verbose.out.split())
    assert "batch_export.both" not in verbose.out


def test_the_json_has_values_places_and_reasons(folder: Path) -> None:
    ran = run(folder, "compare", "staging", "production", "--format", "json")
    compared = json.loads(ran.out)
    Draft202012Validator(known_schema("compare")).validate(compared)
    assert (compared["format_version"], compared["is_equal"], compared["equal"]) == (2, False, 1)
    assert [item["address"] for item in compared["only_second"]] == ["batch_export.old"]
    fields = {
        item["name"]: item
        for item in compared["differences"]
        if item["address"] == "batch_export.lake"
    }
    assert fields["interval"]["intended"] is None
    assert fields["interval"]["first"]["origin"]["line"] == 20
    assert fields["paused"]["first"] is None
    bucket = fields["destination.config.bucket_name"]
    assert bucket["intended"] == "reference"
    assert (bucket["second"]["value"], bucket["second"]["written"]) == (
        "acme-prod",
        "${var:bucket}",
    )


def test_markdown_has_a_row_for_each_difference(folder: Path) -> None:
    ran = run(folder, "compare", "staging", "production", "--format", "markdown")
    rows = [
        line.split(" | ")[1:4] for line in ran.out.splitlines() if "`batch_export.lake`" in line
    ]
    assert ["`interval`", "`day`", "`hour`"] in rows
    assert ["`paused`", "not set", "`true`"] in rows
    assert "**Only in staging**\n" in ran.out
    assert "| + | `batch_export.beta` |" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("staging", "staging"), "cannot compare environment 'staging' with itself"),
        (("staging", "prod"), "unknown environment 'prod'"),
        (("staging", "production", "lak"), "nothing matches 'lak'"),
    ],
)
def test_wrong_names_are_usage_errors(folder: Path, words: tuple[str, ...], message: str) -> None:
    ran = run(folder, "compare", *words)
    assert ran.code == 64
    assert message in ran.err


def test_a_workspace_without_environments_cannot_be_compared(tmp_path: Path) -> None:
    files = {"reconciler.yaml": "version: 1\n", "a.yaml": "projects: {a: {name: A}}\n"}
    ran = run(write(tmp_path, files), "compare", "a", "b")
    assert (ran.code, "this workspace has no environments" in ran.err) == (64, True)


def test_promote_edits_what_is_not_intended_and_keeps_comments(folder: Path) -> None:
    shown = promote(folder, "--diff")
    assert (shown.code, (folder / "exports.yaml").read_text()) == (0, FILES["exports.yaml"])
    assert shown.out == (
        "--- a/exports.yaml\n"
        "+++ b/exports.yaml\n"
        "@@ -1,6 +1,6 @@\n"
        " projects:\n"
        "   web: {name: Web}\n"
        "-  beta: {name: Beta, environments: [staging]}\n"
        "+  beta: {name: Beta, environments: [staging, production]}\n"
        " batch_exports:\n"
        "   # the lake\n"
        "   lake:\n"
        "@@ -20,7 +20,7 @@\n"
        "         interval: day  # a trial\n"
        '         destination: {config: {aws_access_key_id: "${secret:env:STAGING_KEY}"}}\n'
        "       production:\n"
        "-        paused: true\n"
        "+        interval: day\n"
        "   both:\n"
        "     project: web\n"
        "     name: Both\n"
        "@@ -28,7 +28,7 @@\n"
        "     destination: {type: NoOp, config: {}}\n"
        "     overrides: {staging: {interval: day}, production: {interval: week}}\n"
        "   beta:\n"
        "-    environments: [staging]\n"
        "+    environments: [staging, production]\n"
        "     project: beta\n"
        "     name: Beta\n"
        "     interval: hour\n"
    )
    assert shown.err == ""
    assert promote(folder).code == 0
    compared = run(folder, "compare", "staging", "production")
    assert "\n1 resource only in production; 3 intended differences" in compared.out
    again = promote(folder)
    assert (again.code, again.out) == (0, "")
    assert again.err == "Nothing to promote; see `compare staging production`\n"


def test_x11_promote_says_what_it_pauses(folder: Path) -> None:
    text = FILES["exports.yaml"].replace("interval: day  # a trial", "paused: true  # broken")
    write(folder, {"exports.yaml": text.replace("      production:\n        paused: true\n", "")})
    ran = promote(folder, "lake", "--diff")
    assert ran.err == "note: batch_export.lake gets `paused: true` in production, too\n"


def test_promote_takes_names(folder: Path) -> None:
    alone = promote(folder, "batch_export.beta")
    assert (alone.code, "unknown project 'beta'" in alone.err) == (1, True), alone.err
    assert promote(folder, "beta").code == 0
    text = (folder / "exports.yaml").read_text()
    assert "beta: {name: Beta, environments: [staging, production]}" in text
    assert "paused: true" in text


def test_promote_writes_nothing_that_is_invalid_in_the_other_environment(folder: Path) -> None:
    workspace = WORKSPACE.replace("{bucket: acme-staging}", "{bucket: acme-staging, every: day}")
    text = FILES["exports.yaml"].replace("interval: day  # a trial", 'interval: "${var:every}"')
    write(folder, {"reconciler.yaml": workspace, "exports.yaml": text})
    ran = promote(folder)
    assert ran.code == 1
    assert "unknown variable 'every'" in ran.err
    assert (folder / "exports.yaml").read_text() == text


def test_an_anchor_that_is_used_elsewhere_is_refused_with_its_place(folder: Path) -> None:
    text = FILES["exports.yaml"].replace(
        "production:\n        paused: true", "dev: &quiet {paused: true}"
    )
    text = text.replace("production: {interval: week}", "production: *quiet")
    write(folder, {"exports.yaml": text})
    ran = promote(folder, "both")
    assert ran.code == 1
    assert "exports.yaml:28:5: cannot edit a value with an anchor" in ran.err
    assert (folder / "exports.yaml").read_text() == text
