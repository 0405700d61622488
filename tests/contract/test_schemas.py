"""The schemas: complete, consistent with the kinds, and the source of generated pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.kinds import all_kinds
from reconciler.model.kind import Dialect, Field, Kind, Variant
from reconciler.model.schemas import schema, schema_names
from reconciler.model.settings import Policy
from reconciler.model.values import MISSING
from scripts.reference import generated
from scripts.saved_schemas import FORMS
from tests.conftest import ROOT

KINDS = all_kinds()
SOURCES = [name for name in schema_names() if not name.startswith("editor/")]
DESCRIBED = [name for name in SOURCES if name not in FORMS]
GENERATED = generated(KINDS)


def _nodes(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from _nodes(below, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            yield from _nodes(node[word], f"{path}.{word}")


def _tagged() -> Iterator[tuple[Kind, Field, Variant, Mapping[str, Any]]]:
    for kind in KINDS:
        for field in kind.fields:
            if field.variant is not None:
                yield kind, field, field.variant, schema(kind.name)["properties"][field.name]


def _described_fields() -> Iterator[tuple[str, Field, Mapping[str, Any]]]:
    for kind in KINDS:
        properties = schema(kind.name)["properties"]
        for field in kind.fields:
            yield f"{kind.name}.{field.name}", field, properties[field.name]
    for _, _, shape, node in _tagged():
        for extra in shape.extras:
            yield extra.name, extra, node["properties"][extra.name]
        for tag, fields in shape.variants.items():
            inner = schema(f"{node['x-variants']['folder']}/{tag}")["properties"]
            for field in fields:
                yield f"{tag}.{field.name}", field, inner[field.name]


FIELDS = list(_described_fields())


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_value_is_described_and_consistent(name: str) -> None:
    for path, node in _nodes(schema(name), name):
        assert node.get("description"), path
        assert "type" in node, path
        given = [node["default"]] if "default" in node else []
        for value in [*given, *node.get("examples", ())]:
            assert Draft202012Validator(dict(node)).is_valid(value), path
        ends = [Dialect(node[word]) if word in node else None for word in ("x-since", "x-until")]
        assert Dialect.between(*ends), path
        assert set(node.get("x-feature-flag", ())) <= set(node.get("x-open-enum", ())), path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_resources_begin_with_identity_and_end_with_the_common_keys(kind: Kind) -> None:
    names = list(schema(kind.name)["properties"])
    parent = [kind.parent_key] if kind.parent_key else []
    assert names[: len(parent) + 3] == [*parent, "id", "state", "name"]
    assert names[-4:] == ["environments", "overrides", "lifecycle", "secret_version"]


@pytest.mark.parametrize(("name", "field", "node"), FIELDS, ids=[name for name, _, _ in FIELDS])
def test_what_the_schema_says_is_known_of_the_field(
    name: str, field: Field, node: Mapping[str, Any]
) -> None:
    assert field.secret is bool(node.get("x-secret")), name
    if field.default is not MISSING:
        assert type(node["default"]) is type(field.default), name
        assert field.type.canonical(field.default) == field.default, name
    if "default" in node:
        # What is documented as a default is what a removed key goes back to.
        assert field.clearable or node["default"] in (field.default, field.reset), name
    known = Dialect.between(field.since, field.until)
    assert known[0] is (field.since or next(iter(Dialect))), name


def test_the_policy_has_the_keys_of_its_schema() -> None:
    switches = {kind.deletion_switch for kind in KINDS if kind.deletion_switch is not None}
    for node in (
        schema("workspace"),
        schema("workspace")["properties"]["environments"]["additionalProperties"],
    ):
        assert set(node["properties"]["policy"]["properties"]) == {*Policy.keys(), *switches}


@pytest.mark.parametrize(
    ("kind", "field", "shape", "node"), list(_tagged()), ids=lambda value: str(value)[:20]
)
def test_destination_types_are_the_same_everywhere(
    kind: Kind, field: Field, shape: Variant, node: Mapping[str, Any]
) -> None:
    variants = node["x-variants"]
    files = [name for name in SOURCES if name.startswith(f"{variants['folder']}/")]
    assert (variants["tag"], variants["body"]) == (shape.tag, shape.body)
    assert node["properties"][shape.tag]["x-open-enum"] == list(shape.variants)
    assert sorted(files) == sorted(f"{variants['folder']}/{tag}" for tag in shape.variants)
    assert set(node["properties"]) == {shape.tag, shape.body, *(e.name for e in shape.extras)}


@pytest.mark.parametrize(
    ("kind", "field", "shape", "node"), list(_tagged()), ids=lambda value: str(value)[:20]
)
def test_credentials_are_secrets_of_their_type(
    kind: Kind, field: Field, shape: Variant, node: Mapping[str, Any]
) -> None:
    for tag, fields in shape.variants.items():
        inner = schema(f"{node['x-variants']['folder']}/{tag}")
        secrets = {field.name for field in fields if field.secret}
        groups = inner.get("x-credentials", ())
        assert bool(groups) is bool(secrets), tag
        for group in groups:
            assert set(group["fields"]) <= secrets, tag
            for name, value in group.get("when", {}).items():
                assert value in inner["properties"][name]["x-open-enum"], tag


@pytest.mark.parametrize("name", [name for name in DESCRIBED if name.startswith("destinations/")])
def test_what_is_required_is_a_field(name: str) -> None:
    document = schema(name)
    for word in ("required", "x-required-unless"):
        assert set(document.get(word, ())) <= set(document["properties"])
    assert document["additionalProperties"] is False


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_is_current(name: str) -> None:
    path = ROOT / name
    assert path.is_file(), f"{name} is missing: run scripts/reference.py"
    assert path.read_text(encoding="utf-8") == GENERATED[name], "run scripts/reference.py"


def test_every_page_of_the_reference_is_generated() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/reference").iterdir()}
    assert pages == set(GENERATED) - {"docs/consequences.md", "docs/commands.md"}


@pytest.mark.parametrize("name", ["editor/workspace", "editor/resources"])
def test_references_between_schemas_resolve(name: str) -> None:
    document = schema(name)

    def check(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                assert node["$ref"].removeprefix("#/$defs/") in document["$defs"]
            for below in node.values():
                check(below)
        elif isinstance(node, list):
            for below in node:
                check(below)

    check(document)
