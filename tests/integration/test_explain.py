"""`explain`: fields, codes and rules, all from the schemas and the kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from reconciler.codes import codes
from reconciler.commands.explaining import explain
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.dialect import Dialect
from reconciler.model.explanation import Explanation
from reconciler.model.schema_files import known_schema
from reconciler.model.vocabulary import entries
from reconciler.workspace.loading import load_all
from tests.support.cli import reconciler, write


def related(name: str) -> list[str]:
    return [mention.name for mention in explain(name).related]


def test_a_field_of_a_destination() -> None:
    ran = reconciler("explain", "batch_export.destination.S3.compression")
    assert ran.code == 0
    assert (
        ran.out
        == """\
batch_export.destination.S3.compression
  Compression of the files. JSONLines: gzip, brotli; Parquet: zstd, lz4, snappy, gzip, brotli.

  type          text, null
  known values  "gzip", "brotli", "zstd", "lz4", "snappy"

a change can cause
  format-changed  Another file format, compression, encryption or type of columns for new data.

example
  batch_exports:
    my-key:
      destination:
        type: S3
        config:
          compression: gzip
"""
    )


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("batch_export.destination.S3.prefix", ["destination-moved"]),
        ("batch_export.destination.S3.file_format", ["format-changed"]),
        ("batch_export.interval", ["interval-changed"]),
        ("batch_export.timezone", ["schedule-moved"]),
        ("batch_export.paused", ["runs-missed-while-paused", "gap-before-unpausing"]),
        ("project.timezone", ["project-timezone-changed"]),
        ("project.week_start_day", []),
    ],
)
def test_the_consequences_of_a_field_are_what_its_rules_say(name: str, rules: list[str]) -> None:
    assert related(name) == rules


def test_dialects_secrets_and_fields_that_cannot_change() -> None:
    secret = explain("batch_export.destination.S3.aws_secret_access_key")
    assert secret.secret
    assert secret.dialects == (Dialect.INTERFACE, Dialect.V2025)
    assert "${secret:env:AWS_SECRET_ACCESS_KEY}" in secret.example
    assert explain("batch_export.model").fixed == (Dialect.V2026,)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("batch_exports.interval", "batch_export.interval"),
        ("environments.prod.base_url", "environments.*.base_url"),
        ("reconciler.yaml", "workspace"),
        ("policy.prune", "policy.prune"),
    ],
)
def test_other_spellings(name: str, path: str) -> None:
    assert explain(name).path == path


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("batch_export.intervall", "did you mean 'batch_export.interval'?"),
        ("intervall", "did you mean 'batch_export.interval'?"),
        ("timezon", "did you mean 'project.timezone', 'batch_export.timezone'?"),
        ("s3", "did you mean 'batch_export.destination.S3'?"),
        ("max_deletes", "'policy.max_deletes'"),
        ("batch_export.destination.config.table_id", "batch_export.destination.BigQuery.table_id"),
        ("histry-lost", "did you mean 'history-lost'?"),
        ("zzz", "names begin with: project, batch_export, workspace"),
    ],
)
def test_an_unknown_name_has_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(BadUsage) as refused:
        explain(name)
    assert hint in (refused.value.hint or "")


def test_codes_and_rules() -> None:
    for code in codes():
        assert explain(code).text
    for kind in all_kinds():
        for rule in (*kind.rules, *kind.refusals):
            explained = explain(rule.id)
            assert rule.id in explained.example


def children(explanation: Explanation) -> list[Explanation]:
    return [explain(child.name) for child in explanation.children]


def test_children_lead_to_explanations_whose_examples_are_yaml() -> None:
    for top in ("policy", "client", "environments", "batch_export.destination.BigQuery"):
        for child in children(explain(top)):
            assert child.text
            assert not child.example or isinstance(yaml.safe_load(child.example), dict)


_INCOMPLETE = {"missing-field", "unknown-parent", "unlisted-variable", "no-files", "feature-flag"}
"""What is wrong with an example because it is only a part of a workspace."""


def test_examples_are_valid(tmp_path: Path) -> None:
    environments = "version: 1\nenvironments: {production: {}, staging: {}}\n"
    for name in entries(tuple(kind.name for kind in all_kinds())):
        example = explain(name).example
        is_resource = example.startswith(("projects:", "batch_exports:"))
        version = "" if example.startswith("version:") else "version: 1\n"
        workspace = environments if is_resource else f"{version}{example}"
        resources = example if is_resource else "projects: {}\n"
        write(tmp_path, {"reconciler.yaml": workspace, "r.yaml": resources})
        found = load_all(tmp_path, kinds=all_kinds(), environ={})
        assert not {item.code for item in found} - _INCOMPLETE - {"unused-variable"}, example


def test_the_names_without_an_argument() -> None:
    ran = reconciler("explain")
    assert ran.code == 0
    assert "batch_export" in ran.out
    assert "policy" in ran.out


def test_json() -> None:
    ran = reconciler("explain", "project.timezone", "--format", "json")
    shown = json.loads(ran.out)
    Draft202012Validator(known_schema("explain")).validate(shown)
    assert shown["format_version"] == 1
    assert (shown["default"], shown["topic"]) == ("UTC", "field")
    assert [item["name"] for item in shown["related"]] == ["project-timezone-changed"]
