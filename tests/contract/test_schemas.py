"""The schemas: complete, consistent with the kinds, and the source of generated pages and forms.

Every kind keeps the contract that the generic layers rely on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pkgutil import iter_modules
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler import kinds
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.kind import Dialect, Field, Kind, Variant
from reconciler.model.schemas import canonical_text, schema, schema_names
from reconciler.model.settings import Policy
from reconciler.model.values import MISSING
from scripts.reference import generated
from scripts.saved_schemas import FORMS
from tests.conftest import ROOT

KINDS = all_kinds()
SOURCES = [name for name in schema_names() if not name.startswith("editor/")]
DESCRIBED = [name for name in SOURCES if name not in FORMS]
GENERATED = generated(KINDS)
of_kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
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
    Draft202012Validator.check_schema(schema(name))
    for path, node in _nodes(schema(name), name):
        assert node.get("description"), path
        assert "type" in node, path
        given = [node["default"]] if "default" in node else []
        for value in [*given, *node.get("examples", ())]:
            assert Draft202012Validator(dict(node)).is_valid(value), path
        ends = [Dialect(node[word]) if word in node else None for word in ("x-since", "x-until")]
        assert Dialect.between(*ends), path
        assert set(node.get("x-feature-flag", ())) <= set(node.get("x-open-enum", ())), path


@of_kinds
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
def test_destination_types_are_the_same_everywhere_and_their_credentials_are_secrets(
    kind: Kind, field: Field, shape: Variant, node: Mapping[str, Any]
) -> None:
    variants = node["x-variants"]
    files = [name for name in SOURCES if name.startswith(f"{variants['folder']}/")]
    assert (variants["tag"], variants["body"]) == (shape.tag, shape.body)
    assert node["properties"][shape.tag]["x-open-enum"] == list(shape.variants)
    assert sorted(files) == sorted(f"{variants['folder']}/{tag}" for tag in shape.variants)
    assert set(node["properties"]) == {shape.tag, shape.body, *(e.name for e in shape.extras)}
    for tag, fields in shape.variants.items():
        inner = schema(f"{variants['folder']}/{tag}")
        assert inner["additionalProperties"] is False
        for word in ("required", "x-required-unless"):
            assert set(inner.get(word, ())) <= set(inner["properties"])
        secrets = {field.name for field in fields if field.secret}
        groups = inner.get("x-credentials", ())
        assert bool(groups) is bool(secrets), tag
        for group in groups:
            assert set(group["fields"]) <= secrets, tag
            for name, value in group.get("when", {}).items():
                assert value in inner["properties"][name]["x-open-enum"], tag


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
    Draft202012Validator.check_schema(document)
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    assert references <= {f"#/$defs/{name}" for name in document["$defs"]}


@of_kinds
def test_names_and_rules_of_a_kind_are_unique_and_rules_explain_themselves(kind: Kind) -> None:
    names = [name for field in kind.fields for name in (field.name, *field.aliases)]
    assert len(names) == len(set(names))
    rules = behaviour_of(kind).rules
    assert all(rule.meaning.strip() and rule.severities for rule in rules)
    assert len({rule.id for rule in rules}) == len(rules)


@of_kinds
@given(value=_json)
def test_normalising_twice_is_once(kind: Kind, value: object) -> None:
    for field in kind.fields:
        fields = [field]
        if field.variant is not None:
            fields = [inner for variant in field.variant.variants.values() for inner in variant]
        for inner in fields:
            once = inner.type.canonical(value)
            assert canonical_text(inner.type.canonical(once)) == canonical_text(once), inner.name


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


# What the interface documents.

PROJECT_FIELDS = [
    *("app_urls", "name", "slack_incoming_webhook", "anonymize_ips"),
    *("completed_snippet_onboarding", "test_account_filters"),
    *("test_account_filters_default_checked", "path_cleaning_filters", "is_demo", "timezone"),
    *("data_attributes", "person_display_name_properties", "correlation_config"),
    *("autocapture_opt_out", "autocapture_exceptions_opt_in", "autocapture_web_vitals_opt_in"),
    *("autocapture_exceptions_errors_to_ignore", "capture_console_log_opt_in"),
    *("capture_performance_opt_in", "session_recording_opt_in"),
    *("session_recording_sample_rate", "session_recording_minimum_duration_milliseconds"),
    *("session_recording_linked_flag", "session_recording_network_payload_capture_config"),
    *("session_replay_config", "access_control", "week_start_day", "primary_dashboard"),
    *("live_events_columns", "recording_domains", "inject_web_apps", "extra_settings"),
    *("modifiers", "has_completed_onboarding_for", "surveys_opt_in", "heatmaps_opt_in"),
]
"""Those that the interface lists in request bodies (2.4)."""

PROJECT_NULLABLE = [
    *("test_account_filters", "path_cleaning_filters", "data_attributes"),
    *("correlation_config", "autocapture_exceptions_errors_to_ignore"),
    *("session_recording_linked_flag", "session_recording_network_payload_capture_config"),
    *("session_replay_config", "extra_settings", "modifiers", "has_completed_onboarding_for"),
]

EVENTS = {"exclude_events?", "include_events?"}
FILES = {"bucket_name!", "region!", "prefix!", "compression?", "file_format=", "max_file_size_mb?"}
ENCRYPTED = {"encryption?", "kms_key_id?"}
KEYS = {"aws_access_key_id*", "aws_secret_access_key*"}
TABLE = {"schema=", "table_name=", "has_self_signed_cert="}
DESTINATIONS = {
    "S3": FILES | ENCRYPTED | KEYS | {"endpoint_url?", "use_virtual_style_addressing="},
    "AwsS3": FILES | ENCRYPTED | KEYS | {"legacy_parquet_extension="},
    "S3Compatible": FILES | KEYS | {"use_virtual_style_addressing=", "legacy_parquet_extension="},
    "Snowflake": {
        *("account", "user*", "database!", "warehouse!", "schema!", "table_name="),
        *("authentication_type=", "password*", "private_key*", "private_key_passphrase*", "role?"),
    },
    "Postgres": TABLE | {"user*", "password*", "host", "database!", "port="},
    "Redshift": {
        *("user*", "password*", "host", "database!", "schema=", "table_name=", "port="),
        *("properties_data_type=", "mode=", "copy_inputs?"),
    },
    "BigQuery": {
        *("project_id", "dataset_id!", "private_key*", "private_key_id*", "token_uri*"),
        *("client_email*", "table_id=", "use_json_type="),
    },
    "Databricks": {
        *("http_path!", "catalog!", "schema!", "table_name!", "use_variant_type="),
        "use_automatic_schema_evolution=",
    },
    "AzureBlob": {
        *("container_name!", "prefix=", "compression?", "file_format=", "max_file_size_mb?"),
        "legacy_parquet_extension=",
    },
    "HTTP": {"url!", "token*"},
    "Workflows": {"hog_function_id!"},
    "NoOp": {"arg="},
}
"""By type: `!` is required, `*` secret, `?` takes null, `=` has a default."""


def _takes_null(node: dict[str, Any]) -> bool:
    return "null" in node["type"]


def test_every_project_field_of_the_interface_is_known() -> None:
    properties = schema("project")["properties"]
    assert set(PROJECT_FIELDS) <= set(properties)
    # Two of them are nullable by the interface, and refuse null on every real server.
    refused = {"test_account_filters", "autocapture_exceptions_errors_to_ignore", "data_attributes"}
    refusing = {name for name in PROJECT_NULLABLE if not _takes_null(properties[name])}
    assert refusing <= refused


@pytest.mark.parametrize("name", DESTINATIONS)
def test_every_config_field_of_a_destination_is_known(name: str) -> None:
    document = schema(f"destinations/{name}")
    properties = document["properties"]
    for documented in DESTINATIONS[name] | EVENTS:
        signed = documented[-1] in "!*?="
        field, sign = (documented[:-1], documented[-1]) if signed else (documented, "")
        node = properties[field]
        assert (field in document.get("required", ())) == (sign == "!"), field
        assert node.get("x-secret", False) == (sign == "*"), field
        assert sign != "?" or _takes_null(node), field
        assert sign != "=" or "default" in node, field


def test_every_destination_has_a_schema() -> None:
    here = {name.removeprefix("destinations/") for name in SOURCES if "destinations" in name}
    assert here == {*DESTINATIONS, "FileDownload"}
