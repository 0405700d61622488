"""Every kind keeps the contract that the generic layers rely on."""

from __future__ import annotations

import re
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler import kinds
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.kind import Dialect, Kind
from reconciler.model.schemas import canonical_text, schema, schema_names
from tests.conftest import ROOT

KINDS = all_kinds()
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


@pytest.mark.parametrize("name", schema_names())
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_names_within_a_kind_are_unique(kind: Kind) -> None:
    names = [name for field in kind.fields for name in (field.name, *field.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(value=_json)
def test_normalising_twice_is_once(kind: Kind, value: object) -> None:
    for field in kind.fields:
        fields = [field]
        if field.variant is not None:
            fields = [inner for variant in field.variant.variants.values() for inner in variant]
        for inner in fields:
            once = inner.type.canonical(value)
            assert canonical_text(inner.type.canonical(once)) == canonical_text(once), inner.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_rule_explains_itself(kind: Kind) -> None:
    assert all(rule.meaning.strip() and rule.severities for rule in behaviour_of(kind).rules)
    assert len({rule.id for rule in behaviour_of(kind).rules}) == len(behaviour_of(kind).rules)


def test_every_module_of_a_kind_is_that_of_a_schema() -> None:
    modules = {module.name for module in iter_modules(kinds.__path__) if module.ispkg}
    assert modules <= {kind.name for kind in KINDS}


def test_no_module_asks_for_the_newest_server_alone() -> None:
    """A server that comes later behaves as the newest known one, unless a fact says otherwise."""
    newest = list(Dialect)[-1]
    alone = re.compile(rf"is (?:not )?Dialect\.{newest.name}\b")
    package = ROOT / "reconciler"
    asking = [path for path in package.rglob("*.py") if alone.search(path.read_text("utf-8"))]
    assert asking == []
