"""Facts about keys, users and organizations: service.md, section 12."""

from __future__ import annotations

import pytest

from tests.emulator.facts import REAL, Api, fact

CURRENT = "/api/personal_api_keys/@current/"
THEIRS = "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0"
ME = "/api/users/@me/"


def read(api: Api, path: str, key: str) -> dict:
    answer = api.call("GET", path, key=key)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("key", "scopes", "limits", "who"),
    [
        ("phx_read", ["batch_export:read", "project:read"], (None, None), 1),
        ("phx_one", ["*"], ([1], None), 1),
        ("phx_org", ["*"], (None, [THEIRS]), 1),
        ("phx_admin", ["*"], (None, None), 2),
    ],
)
@fact("12", "a key with a label and a user can read itself without any scope", *REAL)
def test_keys_read_themselves(api: Api, key: str, scopes: list, limits: tuple, who: int) -> None:
    shown = read(api, CURRENT, key)
    assert (shown["scopes"], shown["scoped_teams"], shown["scoped_organizations"]) == (
        scopes,
        *limits,
    )
    assert (shown["value"], shown["mask_value"], shown["user_id"]) == (None, "********", who)
    assert (shown["label"] == "Ada's key") is (who == 2)
    assert shown["last_used_at"] == "2026-10-07T10:00:00Z"
    assert shown["created_at"] is not None
    newer = {"description", "is_legacy_hashing", "local_dev_value"}
    fields = {"id", "label", "value", "mask_value", "created_at", "last_used_at", "user_id"}
    fields |= {"scopes", "scoped_teams", "scoped_organizations", "last_rolled_at"}
    assert set(shown) == (fields | newer if api.dialect == "2026" else fields)


@fact("12", "a user requires user:read; the limits of the key do not apply")
def test_users(api: Api) -> None:
    for key in ("phx_all", "phx_one", "phx_user"):
        me = read(api, ME, key)
        assert (me["id"], me["email"]) == (1, "demo@example.com")
        assert (me["team"]["name"], me["team"]["timezone"]) == ("Web", "Europe/Berlin")
        assert me["organization"]["name"] == "Ours"
        assert [team["name"] for team in me["organization"]["teams"]] == ["Web", "App"]
    assert read(api, ME, "phx_admin")["email"] == "ada@example.com"
    assert len(read(api, ME, "phx_user")["organizations"]) == 2
    assert read(api, ME, "phx_nowhere")["team"] is None


@fact("12", "an organization requires organization:read; it has level, projects and features")
def test_organizations(api: Api) -> None:
    for path in (api.organization, "/api/organizations/@current/"):
        shown = read(api, path, "phx_organization")
        assert (shown["name"], shown["membership_level"]) == ("Ours", 15)
        assert [project["id"] for project in shown["projects"]] == [1, 2]
        features = [feature["key"] for feature in shown["available_product_features"]]
        assert features == ["audit_logs", "data_pipelines"]
        assert shown["members_can_use_personal_api_keys"] is True
    assert read(api, api.organization, "phx_member")["membership_level"] == 1
    assert read(api, api.organization, "phx_admin")["membership_level"] == 8
