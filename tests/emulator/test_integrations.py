"""Integrations: list, read, create and delete (service.md, 20)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import S3, Api, fact, invalid, refused

PATH = "/api/projects/1/integrations/"


def create(api: Api, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    answer = api.call("POST", PATH, {"kind": kind, "config": config})
    assert answer.status_code == 201, answer.text
    return answer.json()


def ids(api: Api, query: str = "") -> list[int]:
    answer = api.call("GET", f"{PATH}{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["results"]]


@fact("20", "integrations are listed oldest first", "2026")
def test_the_list_of_integrations(api: Api) -> None:
    assert ids(api) == [3, 4, 5, 7, 10, 11, 12, 13, 14, 15]
    assert ids(api, "?kind=aws-s3") == [7, 15]
    assert ids(api, "?kind=aws-s3&limit=1&offset=1") == [15]


@fact("20", "answers have known keys of the config, never its secrets", "2026")
@pytest.mark.parametrize(
    ("kind", "config", "shown"),
    [
        ("aws-s3", {"name": "n", "aws_account_id": "1", "aws_secret_access_key": "x"}, "n"),
        ("databricks", {"server_hostname": "d", "client_secret": "x"}, None),
        ("azure-blob", {"account_name": "acme", "connection_string": "x"}, None),
    ],
)
def test_configs(api: Api, kind: str, config: dict[str, Any], shown: str | None) -> None:
    created = create(api, kind, config)
    assert "x" not in created["config"].values()
    assert created["config"].get("name") == shown
    read = api.call("GET", f"{PATH}{created['id']}/").json()
    assert read == created
    if kind == "azure-blob":
        assert (read["config"], read["display_name"]) == ({}, f"{read['id']}: acme")


@fact("20", "a name is unique by project and kind; a server is written again", "2026")
def test_the_same_integration_again(api: Api) -> None:
    create(api, "aws-s3", {"name": "n"})
    again = api.call("POST", PATH, {"kind": "aws-s3", "config": {"name": "n"}})
    assert again.status_code == 400
    no_kind = api.call("POST", PATH, {"kind": ["aws-s3"], "config": {"name": "n"}})
    refused(no_kind, 400, "invalid_choice", "kind")
    create(api, "s3-compatible", {"name": "n"})
    server = {"host": "h", "port": 5432, "user": "u"}
    first = create(api, "postgresql", server)
    assert create(api, "postgresql", {**server, "password": "new"})["id"] == first["id"]


@fact("20", "an integration in use is not deleted, and its id is not given again", "2026")
def test_the_deletion_of_an_integration(api: Api) -> None:
    made = create(api, "aws-s3", {"name": "n"})
    destination = {"type": "AwsS3", "config": S3, "integration": made["id"]}
    export = api.create(destination=destination)
    detail = invalid(api.call("DELETE", f"{PATH}{made['id']}/"))
    assert detail == "This integration is used by batch exports: Lake."
    api.patch(export, destination={**destination, "integration": 7})
    assert api.call("DELETE", f"{PATH}{made['id']}/").status_code == 204
    assert api.call("GET", f"{PATH}{made['id']}/").status_code == 404
    assert create(api, "aws-s3", {"name": "n"})["id"] > made["id"]
