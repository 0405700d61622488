"""`compare` and `promote`: two environments of the files, and the edits."""

from __future__ import annotations

from pathlib import Path

import pytest

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
EXPORTS = """\
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
"""
COMPARED = """\
Environments staging and production · configuration

  ~ batch_export.lake "Lake"
      interval  day in staging, hour in production  exports.yaml:20
      paused    not set in staging, true in production  exports.yaml:23

Only in staging:
  + batch_export.beta "Beta"  exports.yaml:30
  + project.beta "Beta"  exports.yaml:3

Only in production:
  + batch_export.old "Old"  exports.yaml:36

2 differences in 1 resource, 2 resources only in staging, \
1 resource only in production; 3 intended differences (--verbose), 1 equal.
"""
DIFFERENCE = """\
--- a/exports.yaml
+++ b/exports.yaml
-  beta: {name: Beta, environments: [staging]}
+  beta: {name: Beta, environments: [staging, production]}
-        paused: true
+        interval: day
-    environments: [staging]
+    environments: [staging, production]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", {"reconciler.yaml": WORKSPACE, "exports.yaml": EXPORTS})


def run(folder: Path, command: str, *words: str) -> Ran:
    return reconciler(command, "-C", folder, "--trust-workspace", *words)


def promote(folder: Path, *words: str) -> Ran:
    return run(folder, "promote", "--from", "staging", "--to", "production", *words)


def test_differences_are_apart_from_intended_ones(folder: Path) -> None:
    ran = run(folder, "compare", "staging", "production")
    assert ran.code == 2
    assert ran.out == COMPARED
    verbose = run(folder, "compare", "staging", "production", "lake", "--verbose")
    assert (
        "destination.config.bucket_name acme-staging in staging, acme-prod in production"
        " ${var:bucket}"
    ) in " ".join(verbose.out.split())
    assert "batch_export.both" not in verbose.out
    assert "--verbose" not in verbose.out


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
    assert (ran.code, message in ran.err) == (64, True), ran.err


def test_promote_edits_what_is_not_intended_and_keeps_comments(folder: Path) -> None:
    shown = promote(folder, "--diff")
    assert (shown.code, (folder / "exports.yaml").read_text()) == (0, EXPORTS)
    lines = [line for line in shown.out.splitlines() if line.startswith(("+", "-"))]
    assert lines == DIFFERENCE.splitlines()
    assert shown.err == ""
    assert promote(folder).code == 0
    compared = run(folder, "compare", "staging", "production")
    assert "\n1 resource only in production; 3 intended differences" in compared.out
    again = promote(folder)
    assert (again.code, again.out) == (0, "")
    assert again.err == "Nothing to promote; see `compare staging production`\n"


def test_x11_promote_says_what_it_pauses(folder: Path) -> None:
    text = EXPORTS.replace("interval: day  # a trial", "paused: true  # broken")
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


@pytest.mark.parametrize(
    ("settings", "exports", "message"),
    [
        pytest.param(
            WORKSPACE.replace("acme-staging}", "acme-staging, every: day}"),
            EXPORTS.replace("interval: day  # a trial", 'interval: "${var:every}"'),
            "unknown variable 'every'",
            id="invalid in the other environment",
        ),
        pytest.param(
            WORKSPACE,
            EXPORTS.replace(
                "production:\n        paused: true", "dev: &quiet {paused: true}"
            ).replace("production: {interval: week}", "production: *quiet"),
            "exports.yaml:28:5: cannot edit a value with an anchor",
            id="an anchor that is used elsewhere",
        ),
    ],
)
def test_promote_writes_nothing_that_is_invalid_or_shared(
    folder: Path, settings: str, exports: str, message: str
) -> None:
    write(folder, {"reconciler.yaml": settings, "exports.yaml": exports})
    ran = promote(folder)
    assert (ran.code, message in ran.err) == (1, True), ran.err
    assert (folder / "exports.yaml").read_text() == exports
