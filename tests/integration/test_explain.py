"""`explain`: what the generated reference says about fields, codes and rules."""

from __future__ import annotations

import pytest

from reconciler.commands.explain import explain
from reconciler.errors import BadUsage, codes
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.schemas import known_schema
from tests.support.cli import reconciler


def test_a_field_of_a_destination() -> None:
    ran = reconciler("explain", "batch_export.destination.S3.file_format")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "batch_export.destination.S3.file_format",
        "  Format of the files. Known: `JSONLines`, `Parquet`.",
        "  type     text",
        '  default  `"JSONLines"`',
    ]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("environments.prod.base_url", ["environments.*.base_url"]),
        ("policy.prune", ["policy.prune"]),
        ("max_deletes", ["policy.max_deletes"]),
        ("S3", ["batch_export.destination.S3"]),
        ("filters[].type", ["batch_export.filters[].type"]),
        ("timezone", ["project.timezone", "batch_export.timezone"]),
    ],
)
def test_other_spellings_and_what_is_below(name: str, first: list[str]) -> None:
    names = [entry.name for entry in explain(name)]
    below = [other for other in names if other.startswith(f"{first[0]}.")]
    assert [other for other in names if other not in below] == first
    assert (name != "S3") or below[0] == "batch_export.destination.S3.bucket_name"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("intervall", "did you mean 'batch_export.interval'?"),
        ("histry-lost", "did you mean 'history-lost'?"),
        ("batch_exprt", "did you mean 'batch_export'?"),
        ("gaps", "did you mean `reconciler gaps --help`?"),
        ("policy.prun", "did you mean 'policy.prune' or 'policy.rules'?"),
        ("destination.s3", "did you mean 'batch_export.destination.S3'?"),
        ("zzz", "see docs/reference/"),
    ],
)
def test_an_unknown_name_has_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(BadUsage) as refused:
        explain(name)
    assert refused.value.hint == hint


def test_every_field_code_and_rule_has_an_entry() -> None:
    names = [*codes(), *known_schema("workspace")["properties"]]
    for kind in all_kinds():
        names += [f"{kind.name}.{field}" for field in known_schema(kind.name)["properties"]]
        behaviour = behaviour_of(kind)
        names += [rule.id for rule in (*behaviour.rules, *behaviour.refusals)]
    assert [name for name in names if not explain(name)[0].text] == []


def test_the_names_without_an_argument() -> None:
    ran = reconciler("explain")
    assert {"batch_export", "policy"} <= set(ran.out.split())
    assert "history-lost" not in ran.out
