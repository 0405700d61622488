"""The managed fields of a resource: their names, secrets and addresses."""

from __future__ import annotations

from reconciler.kinds import all_kinds
from reconciler.model.values import JSON
from reconciler.workspace.layers import managed_in

KIND = next(kind for kind in all_kinds() if kind.name == "batch_export")


def _export(**changes: JSON) -> dict[str, JSON]:
    return {"project": "web", "name": "x", "interval": "hour", "destination": {}} | changes


def test_managed_fields_have_the_names_of_the_kind() -> None:
    fields = _export(hogql_query="SELECT 1", lifecycle={"protect": True}, id="1")
    managed = managed_in(fields, KIND)
    assert managed.names == (
        ("name", "name"),
        ("interval", "interval"),
        ("destination", "destination"),
        ("sql_query", "hogql_query"),
    )
    assert managed.written == {"sql_query": "hogql_query"}
    assert managed.repeated == ()


def test_a_field_under_two_names_is_reported() -> None:
    managed = managed_in(_export(sql_query="SELECT 1", hogql_query="SELECT 2"), KIND)
    assert managed.repeated == (("hogql_query", "sql_query"),)


def test_managed_fields_have_the_paths_of_secrets_and_of_texts_that_may_be_urls() -> None:
    config: JSON = {"url": "https://a:b@x.example/", "password": "p", "method": "POST"}
    managed = managed_in(_export(destination={"type": "HTTP", "config": config}), KIND)
    assert managed.with_at == (("destination", "config", "url"),)
    postgres = managed_in(_export(destination={"type": "Postgres", "config": config}), KIND)
    assert ("destination", "config", "password") in postgres.secret
