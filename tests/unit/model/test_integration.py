"""Integrations of answers: their names, and nothing secret of their config."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kinds.batch_export import integration_of
from reconciler.model.kind import IntegrationField, Integrations


def shown(kind: str, /, display_name: str = "", **config: Any) -> str:
    body = {"id": 7, "kind": kind, "config": config, "display_name": display_name}
    return str(integration_of(body))


@pytest.mark.parametrize(
    ("kind", "config", "text"),
    [
        ("aws-s3", {"name": "n", "aws_account_id": "1"}, "n (7, AWS account 1)"),
        ("aws-s3", {"name": "n", "aws_role_arn": "arn:r"}, "n (7, arn:r)"),
        ("s3-compatible", {"name": "n", "endpoint_url": "https://s.x"}, "n (7, https://s.x)"),
        ("snowflake", {"name": "n", "account": "a", "user": "u"}, "n (7, Snowflake account a)"),
        ("aws-redshift", {"name": "n", "host": "h", "port": 1, "user": "u"}, "n (7)"),
        ("aws-redshift", {"host": "h", "port": 1, "user": "u"}, "h:1/u (7)"),
        ("postgresql", {"host": "h", "port": "1", "user": "u"}, "h:1/u (7)"),
        (
            "google-cloud-service-account",
            {"project_id": "p", "service_account_email": "a@b"},
            "a@b (7, project p)",
        ),
        ("databricks", {"server_hostname": "h"}, "h (7)"),
        ("azure-blob", {"display_name": "7: acme"}, "acme (7)"),
        ("github", {"name": "n"}, "None"),
    ],
)
def test_names_of_integrations(kind: str, config: dict[str, Any], text: str) -> None:
    assert shown(kind, **config) == text


@pytest.mark.parametrize(
    "config",
    [
        {"aws_secret_access_key": "hunter2"},
        {"endpoint_url": "https://me:hunter2@s.x"},
        {"ssl_root_cert": "hunter2"},
        {"account": {"password": "hunter2"}},
    ],
)
def test_secrets_in_old_rows_are_not_read(config: dict[str, Any]) -> None:
    assert shown("aws-s3", name="n", **config) == "n (7)"


@pytest.mark.parametrize(
    ("value", "name", "of_role"),
    [
        ("12", None, None),
        ("prod", "prod", None),
        ({"name": "12"}, "12", "12"),
        ({"aws_access_key_id": "x"}, None, None),
    ],
)
def test_names_in_files(value: Any, name: str | None, of_role: str | None) -> None:
    assert IntegrationField((), "aws-s3").name_in(value) == name
    assert IntegrationField((), "aws-s3", by_text=False).name_in(value) == of_role


def test_a_name_is_written_if_it_finds_the_integration() -> None:
    bodies = (
        {"id": number, "kind": "aws-s3", "config": {"name": name}}
        for number, name in enumerate(("prod", "twin", "twin", "12", ""))
    )
    table = Integrations(tuple(filter(None, map(integration_of, bodies))))
    field = IntegrationField((), "aws-s3")
    written = [field.written(table, number) for number in range(6)]
    assert written == ["prod", 1, 2, {"name": "12"}, 4, 5]
    role = IntegrationField((), "aws-s3", by_text=False)
    assert role.written(table, "0") == {"name": "prod"}
    assert role.written(table, "arn:aws:iam::1:role/r") == "arn:aws:iam::1:role/r"
