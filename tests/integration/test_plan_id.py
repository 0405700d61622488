"""`apply --plan-id`: apply only the plan that was reviewed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

FILES = {
    "reconciler.yaml": "version: 1\n",
    "all.yaml": "projects:\n  web: {name: Web}\n  shop: {name: Shop}\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path, FILES)


def plan_id(workspace: Path, emulator: RunningEmulator) -> str:
    ran = reconciler("plan", "-C", workspace, "--format", "json", environ=emulator.environ())
    return str(json.loads(ran.out)["plan_id"])


@pytest.mark.parametrize("length", [8, 64])
def test_the_reviewed_plan_is_applied_without_a_question(
    workspace: Path, emulator: RunningEmulator, length: int
) -> None:
    reviewed = plan_id(workspace, emulator)[:length]
    ran = reconciler("apply", "-C", workspace, "--plan-id", reviewed, environ=emulator.environ())
    assert (ran.code, "Applied: 2 created" in ran.out) == (0, True), ran.err
    again = reconciler("apply", "-C", workspace, "--plan-id", reviewed, environ=emulator.environ())
    assert again.code == 4


def test_another_plan_is_shown_and_not_applied(workspace: Path, emulator: RunningEmulator) -> None:
    reviewed = plan_id(workspace, emulator)
    write(workspace, {"more.yaml": "projects:\n  ops: {name: Ops}\n"})
    now = plan_id(workspace, emulator)
    ran = reconciler("apply", "-C", workspace, "--plan-id", reviewed, environ=emulator.environ())
    assert ran.code == 4
    assert "3 to create" in ran.out
    assert f"the plan is {now}, not {reviewed}; nothing was sent" in ran.err
    assert emulator.writes() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (("--plan-id", written), "8 to 64 hexadecimal digits")
            for written in ("", "3c9a41f", "not-hex-digits", "a" * 65)
        ),
        (("plan.json", "--plan-id", "3c9a41f0"), "--plan-id and PLAN_FILE exclude each other"),
    ],
)
def test_an_id_has_8_to_64_hex_digits_and_excludes_a_saved_plan(
    workspace: Path, words: tuple[str, ...], message: str
) -> None:
    ran = reconciler("apply", "-C", workspace, *words)
    assert (ran.code, message in ran.err) == (64, True)
