"""`explain`: what the generated reference says about fields, codes and rules."""

from __future__ import annotations

import tomllib

import pytest

from reconciler.commands.explain import explain
from reconciler.errors import BadUsage, codes
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.schemas import known_schema
from tests.conftest import ROOT
from tests.support.cli import reconciler


def test_a_field_of_a_destination() -> None:
    ran = reconciler("explain", "batch_export.destination.S3.file_format")
    assert ran.code == 0
    assert (
        ran.out
        == """\
batch_export.destination.S3.file_format
  Format of the files. Known: `JSONLines`, `Parquet`.
  type     text
  default  `"JSONLines"`
"""
    )


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("environments.prod.base_url", "environments.*.base_url"),
        ("policy.prune", "policy.prune"),
        ("max_deletes", "policy.max_deletes"),
        ("S3", "batch_export.destination.S3"),
        ("filters[].type", "batch_export.filters[].type"),
    ],
)
def test_other_spellings(name: str, first: str) -> None:
    assert explain(name)[0].name == first


def test_the_end_of_a_path_is_found_in_every_place_with_what_is_below() -> None:
    assert {entry.name for entry in explain("timezone")} == {
        "project.timezone",
        "batch_export.timezone",
    }
    names = [entry.name for entry in explain("batch_export.destination.S3")]
    assert names[:2] == ["batch_export.destination.S3", "batch_export.destination.S3.bucket_name"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("batch_export.intervall", "did you mean 'batch_export.interval'?"),
        ("intervall", "did you mean 'batch_export.interval'?"),
        ("histry-lost", "did you mean 'history-lost'?"),
        ("zzz", "see docs/reference/"),
    ],
)
def test_an_unknown_name_has_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(BadUsage) as refused:
        explain(name)
    assert refused.value.hint == hint


def test_every_field_code_and_rule_has_an_entry() -> None:
    for kind in all_kinds():
        for field in known_schema(kind.name)["properties"]:
            assert explain(f"{kind.name}.{field}")[0].text
        for rule in (*behaviour_of(kind).rules, *behaviour_of(kind).refusals):
            assert explain(rule.id)[0].text
    for code in codes():
        assert explain(code)[0].text
    for setting in known_schema("workspace")["properties"]:
        assert explain(setting)[0].text


def test_the_names_without_an_argument() -> None:
    ran = reconciler("explain")
    assert {"batch_export", "policy"} <= set(ran.out.split())
    assert "history-lost" not in ran.out


def test_the_reference_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for name in ("docs/reference", "docs/consequences.md"):
        assert installed[name] == f"reconciler/{name}"
