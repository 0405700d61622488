"""Exports of a copy of the service: what their destinations need besides their answers."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.batch_export.destinations import DESTINATION
from reconciler.model.copied import PLACEHOLDER, Copied, Related
from reconciler.model.schema_files import known_schema
from reconciler.model.values import JSON, JSONObject, value_at

_KINDS: Mapping[str, str] = {
    "AwsS3": "aws-s3",
    "S3Compatible": "s3-compatible",
    "Snowflake": "snowflake",
    "Postgres": "postgresql",
    "Redshift": "redshift",
    "BigQuery": "google-cloud-service-account",
    "Databricks": "databricks",
    "AzureBlob": "azure-blob",
}
"""The kinds of integrations by type (docs/service.md 1.3)."""
_COPY_INPUTS = "copy_inputs"
_NESTED = ("authorization", "bucket_credentials")
_AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key")


def copied_export(body: JSONObject, sent: JSONObject) -> Copied:
    """Return an export of a copy, and the integrations that it and a planned body name."""
    related = {**_integration(sent), **_integration(body)}
    destination = body.get("destination")
    if not isinstance(destination, Mapping):
        return Copied(body, related)
    config = {**_mapping(destination.get("config"))}
    if destination.get("integration") is None:
        config |= dict.fromkeys(_stored_secrets(str(destination.get("type")), config), PLACEHOLDER)
    inputs = {**_mapping(config.get(_COPY_INPUTS))}
    for name in _NESTED:
        if isinstance(inputs.get(name), Mapping):
            # Answers lack nested credentials, which leaves an empty object.
            inputs[name] = {**dict.fromkeys(_AWS_KEYS, PLACEHOLDER), **inputs[name]}
    if inputs:
        config[_COPY_INPUTS] = inputs
    return Copied({**body, "destination": {**destination, "config": config}}, related)


def _integration(body: JSONObject) -> Related:
    number = value_at(body, ("destination", "integration"))
    kind = _KINDS.get(str(value_at(body, ("destination", "type"))))
    if kind is None or isinstance(number, bool) or not isinstance(number, int):
        return {}
    return {("integrations", number): {"kind": kind}}


def _stored_secrets(tag: str, config: JSONObject) -> list[str]:
    """Return the names of the secrets that an export of a type has, by how it signs in."""
    schema = known_schema(f"destinations/{tag}") if tag in DESTINATION.variants else {}
    properties = _mapping(schema.get("properties"))
    names: list[str] = []
    for credentials in schema.get("x-credentials", ()):
        conditions = _mapping(credentials.get("when"))
        if all(
            config.get(name, _mapping(properties.get(name)).get("default")) == value
            for name, value in conditions.items()
        ):
            names += credentials["fields"]
    return names


def _mapping(value: JSON) -> JSONObject:
    return value if isinstance(value, Mapping) else {}
