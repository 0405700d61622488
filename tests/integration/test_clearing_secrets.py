"""I9: null in a secret field clears what the service has, where the service accepts that."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.live import LiveObject
from reconciler.model.plan import SecretUse
from reconciler.model.values import CLEARED, SecretRef
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

SNOWFLAKE = """\
projects: {web: {id: 1, name: Default project}}
batch_exports:
  dwh:
    project: web
    name: DWH
    interval: hour
    destination:
      type: Snowflake
      config:
        account: acme
        database: d
        warehouse: w
        schema: s
        authentication_type: keypair
        user: ${secret:env:RECONCILER_SECRET_USER}
        private_key: ${secret:env:RECONCILER_SECRET_KEY}
        private_key_passphrase: %s
"""
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----"
ENVIRON = {
    "RECONCILER_SECRET_USER": "hunter2-user",
    "RECONCILER_SECRET_KEY": PEM,
    "RECONCILER_SECRET_PASS": "hunter2-pass",
}


def run(folder: Path, text: str, service: RunningEmulator, *words: str) -> Ran:
    write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    return reconciler(*words, "-C", folder, environ={**service.environ(), **ENVIRON})


APPLY = ("apply", "--auto-approve")


def test_i9_null_clears_a_passphrase(tmp_path: Path, service_of: StartService) -> None:
    service = service_of(None, "--dialect", "2025")
    text = SNOWFLAKE % "${secret:env:RECONCILER_SECRET_PASS}"
    assert run(tmp_path, text, service, *APPLY).code == 0
    service.clear_requests()
    ran = run(tmp_path, SNOWFLAKE % "null", service, *APPLY, "--rotate-secrets")
    assert ran.code == 0, ran.out + ran.err
    (sent,) = [item["body"] for item in service.requests() if item["method"] == "PATCH"]
    assert sent["destination"]["config"]["private_key_passphrase"] is None
    assert sent["destination"]["config"]["private_key"] is not None


@pytest.mark.parametrize("before", [{}, {"slack_incoming_webhook": SecretRef.of("env", "HOOK")}])
@pytest.mark.parametrize("shown", [None, "https://hooks.slack.com/x", ...])
def test_i9_null_is_sent_if_it_changes_something(before: dict[str, object], shown: object) -> None:
    """I9: what the live object shows decides; if it shows nothing, what was declared before."""
    body = {} if shown is ... else {"slack_incoming_webhook": shown}
    live: LiveObject = live_project(**body)
    now, was = project(slack_incoming_webhook=CLEARED), project(**before)
    plan = planned(desired_of(now), live_of(live), base=desired_of(was))
    changes = [change for change in plan.effective if change.body]
    expected = True if shown is ... else shown is not None
    assert [change.body for change in changes] == [{"slack_incoming_webhook": CLEARED}] * expected
    assert "hooks.slack.com" not in str(plan.effective)


def test_i9_a_removed_passphrase_is_kept_and_the_plan_says_how_to_clear_it() -> None:
    config = {"account": "acme", "private_key": SecretRef.of("env", "KEY")}
    was = {**config, "private_key_passphrase": SecretRef.of("env", "PASS")}
    snowflake = {"type": "Snowflake", "config": {"account": "acme"}}
    web, live = project(), live_of(live_project(), live_export(destination=snowflake))
    before = desired_of(web, export(destination={"type": "Snowflake", "config": was}))
    after = desired_of(web, export(destination={"type": "Snowflake", "config": config}))
    (note,) = [
        item for item in planned(after, live, base=before).notes if "passphrase" in item.message
    ]
    assert note.message.endswith("it keeps its live value; write null to clear it")
    config["private_key_passphrase"] = CLEARED
    cleared = desired_of(web, export(destination={"type": "Snowflake", "config": config}))
    (change,) = planned(cleared, live, base=before).effective
    uses = {item.path[-1]: (str(item.ref), item.use) for item in change.secrets}
    assert uses["private_key_passphrase"] == ("null", SecretUse.REFERENCE_CHANGED)
    assert change.body["destination"]["config"] == {
        "private_key": SecretRef.of("env", "KEY"),
        "private_key_passphrase": CLEARED,
    }


@pytest.mark.parametrize(
    ("value", "field", "texts"),
    [
        ("''", "private_key_passphrase", ("is a secret and must not be empty", "or null to clear")),
        ("null", "password", ("must be text, not null", "the service keeps its value")),
        ("null", "private_key_passphrase", ()),
    ],
)
def test_i9_validate_says_what_clears_a_secret(
    tmp_path: Path, value: str, field: str, texts: tuple[str, ...]
) -> None:
    text = (SNOWFLAKE % value).replace("private_key_passphrase", field)
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    ran = reconciler("validate", "-C", tmp_path)
    assert ran.code == bool(texts), ran.out
    for part in texts:
        assert part in " ".join(ran.out.split())
