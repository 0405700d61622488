"""Integrations of destinations (service.md 20): which type takes which, and their names."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.integration import Integration, IntegrationField
from reconciler.model.schemas import holds_secret
from reconciler.model.values import JSONObject, mapping_of

_KINDS = {
    "AwsS3": "aws-s3",
    "S3Compatible": "s3-compatible",
    "Snowflake": "snowflake",
    "Redshift": "aws-redshift",
    "Postgres": "postgresql",
    "BigQuery": "google-cloud-service-account",
    "Databricks": "databricks",
    "AzureBlob": "azure-blob",
}
_COPY = (
    # Other text is the name of a role.
    IntegrationField(("config", "copy_inputs", "authorization"), "aws-s3", by_text=False),
    IntegrationField(("config", "copy_inputs", "bucket_credentials"), "aws-s3"),
)

INTEGRATIONS: Mapping[str, tuple[IntegrationField, ...]] = {
    **{tag: (IntegrationField(("integration",), kind),) for tag, kind in _KINDS.items()},
    "Redshift": (IntegrationField(("integration",), "aws-redshift"), *_COPY),
}
"""The fields of a destination that take an integration, by type."""

_NAMES = ("name", "service_account_email", "server_hostname")
_ACCOUNTS = {
    "aws_account_id": "AWS account {}",
    "aws_role_arn": "{}",
    "account": "Snowflake account {}",
    "endpoint_url": "{}",
    "project_id": "project {}",
}
"""The known keys of `config`: others may be secret."""


def integration_of(body: JSONObject) -> Integration | None:
    """Return the integration in an answer, None for one that no destination uses."""
    number, kind, config = body.get("id"), body.get("kind"), mapping_of(body.get("config"))
    if not isinstance(number, int) or kind not in _KINDS.values():
        return None
    plain = {key: str(value) for key, value in config.items() if isinstance(value, (str, int))}
    texts = {key: text for key, text in plain.items() if not holds_secret(text)}
    name = next((texts[key] for key in _NAMES if key in texts), "")
    if not name and {"host", "port", "user"} <= texts.keys():
        name = "{host}:{port}/{user}".format_map(texts)
    if not name and kind == "azure-blob":
        name = str(body.get("display_name") or "").partition(": ")[2]
    accounts = (form.format(texts[key]) for key, form in _ACCOUNTS.items() if key in texts)
    return Integration(str(number), str(kind), name, next(accounts, ""))
