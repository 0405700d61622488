"""Every kind keeps the contract that the generic layers rely on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler.config.schema_files import schema, schema_names
from reconciler.kinds import all_kinds
from reconciler.model.kind import Field, Kind, Tagged
from reconciler.model.shape import canonical_text
from reconciler.model.values import MISSING

KINDS = all_kinds()
COMMON = {"id", "state", "environments", "overrides", "lifecycle", "secret_version"}
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(0, 9)
    | st.text(max_size=5)
    | st.sampled_from(
        ["5432", "True", "0.4", "2026-01-01T00:00:00+02:00", "select 1+1 from events"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def _schema_pairs() -> Iterator[tuple[str, dict[str, object], tuple[Field, ...]]]:
    for kind in KINDS:
        document = schema(kind.name)
        assert document is not None
        yield kind.name, document, kind.fields
        for field in kind.fields:
            if isinstance(field.shape, Tagged):
                variants = document["properties"][field.name]["x-variants"]
                for tag, fields in field.shape.variants.items():
                    inner = schema(f"{variants['folder']}/{tag}")
                    assert inner is not None, tag
                    yield tag, inner, fields


@pytest.mark.parametrize("name", schema_names())
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize(
    ("name", "document", "fields"), list(_schema_pairs()), ids=lambda v: str(v)[:20]
)
def test_schema_and_fields_agree(
    name: str, document: dict[str, object], fields: tuple[Field, ...]
) -> None:
    properties = dict(document["properties"])
    own = {name for field in fields for name in (field.name, *field.aliases)}
    parents = {kind.parent_key for kind in KINDS if kind.name == name}
    assert set(properties) - COMMON - parents == own
    for field in fields:
        described = properties[field.name]
        assert described.get("description"), field.name
        assert bool(described.get("x-secret")) is field.secret, field.name
        if field.default is not MISSING and field.default not in (None, 0, ""):
            assert described.get("default") == field.default, field.name
        kinds_of_value = described.get("type", [])
        nullable = "null" in kinds_of_value or "type" not in described
        if field.clearable and not isinstance(field.shape, Tagged):
            assert nullable, f"{name}.{field.name} can be cleared, and its schema forbids null"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_names_within_a_kind_are_unique(kind: Kind) -> None:
    names = [name for field in kind.fields for name in (field.name, *field.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(value=_json)
def test_normalising_twice_is_once(kind: Kind, value: object) -> None:
    for field in kind.fields:
        fields = [field]
        if isinstance(field.shape, Tagged):
            fields = [inner for variant in field.shape.variants.values() for inner in variant]
        for inner in fields:
            once = inner.shape.canonical(value)
            assert canonical_text(inner.shape.canonical(once)) == canonical_text(once), inner.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_rule_explains_itself(kind: Kind) -> None:
    assert all(rule.__doc__ for rule in kind.rules)
