"""Integrations: list, read, create and delete (service.md, 20)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.facts import Api, fact

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


@fact("20", "answers have known keys of the config, never its secrets", "2026")
@pytest.mark.parametrize(
    ("kind", "config", "shown"),
    [
        ("aws-s3", {"name": "n", "aws_account_id": "1", "aws_secret_access_key": "x"}, "n"),
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
