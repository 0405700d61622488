"""C1: an odd value in an answer or a file is unknown or an error, and never a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconciler.exit_codes import ExitCode
from tests.conftest import LONG, StartService
from tests.reliability.accounting import duplicates, identities
from tests.security.odd import ODD, REMOVED, OddService, Place, odd_service
from tests.support.cli import Ran, reconciler, write
from tests.support.git import Git

ANSWERS, FILES = (2_000, 1_000) if LONG else (48, 60)
ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
HTTP = {"type": "HTTP", "config": {"url": "https://eu.i.posthog.com/batch/", "token": "t"}}
LAKE = {
    "name": "Lake",
    "interval": "day",
    "timezone": "Europe/Berlin",
    "filters": [{"key": "plan", "type": "event", "value": "a", "operator": "exact"}],
    "start_at": "2026-05-01T00:00:00Z",
    "destination": {
        "type": "AwsS3",
        "integration": 100,
        "config": {"bucket_name": "acme-lake", "region": "eu-central-1", "prefix": "p/"},
    },
}
HOOK = {"name": "Hook", "interval": "hour", "destination": HTTP, "end_at": "2099-01-01T00:00:00Z"}
SEED = {
    "organizations": [
        {
            "id": ORGANIZATION,
            "name": "Acme",
            "projects": [{"id": 1, "name": "Web", "batch_exports": [LAKE, HOOK]}],
        }
    ],
    "integrations": [
        {"id": 100, "project": 1, "kind": "aws-s3", "config": {"name": "lake"}},
    ],
    "keys": [{"value": "phx_admin", "scopes": ["*"]}],
}
PROJECT = {"name": "Web", "timezone": "UTC", "session_recording_sample_rate": 0.5}
NAMED = {**LAKE, "destination": {**LAKE["destination"], "integration": "lake"}}
SENT = {
    **HOOK,
    "destination": {**HTTP, "config": {**HTTP["config"], "token": "${secret:env:HOOK_TOKEN}"}},
}
DECLARED = {
    "projects": {"web": {**PROJECT, "timezone": "Europe/Berlin"}},
    "batch_exports": {
        "lake": {"project": "web", **NAMED, "filters": []},
        "hook": {"project": "web", **SENT, "paused": False},
        "new": {"project": "web", **NAMED, "name": "New"},
    },
}
RANGE = ("--from", "2026-06-01", "--to", "2026-06-03")
CONFIGURATION = "version: 1\nsecrets: [HOOK_TOKEN]\n"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("plan", "--no-inventory"),
    ("plan", "--no-inventory", "--format", "json"),
    ("plan", "--no-inventory", "--format", "html", "--show-unmanaged", "--verbose"),
    ("apply", "--no-inventory", "--auto-approve"),
    ("apply", "--no-inventory", "--auto-approve", "--verbose"),
    ("apply", "--no-inventory", "--auto-approve", "--format", "json"),
    ("drift", "--attribute", "lake"),
    ("status",),
    ("status", "--format", "html", "--all"),
    ("status", "--format", "json"),
    ("gaps",),
    ("gaps", "--from", "2026-05-01", "--format", "json"),
    ("runs", "hook"),
    ("runs", "lake", "--format", "json"),
    ("logs", "hook"),
    ("import", "--dry-run"),
    ("doctor",),
    ("backfill", "lake", *RANGE, "--dry-run"),
    ("backfill", "lake", "--gaps", "--dry-run"),
    ("backfill", "hook", *RANGE, "--auto-approve"),
    ("pause", "hook", "--auto-approve"),
    ("unpause", "hook", "--auto-approve"),
    ("projects", "list"),
    ("projects", "show", "web"),
)
WRITING = frozenset({"apply", "backfill", "pause", "unpause"})
IDENTITY = frozenset({"id", "name", "team_id", "organization", "results"})
"""A wrong value of these makes an answer one of another object, which nobody can see."""
EXPORT, RUN = ("batch_exports", "results", "*"), ("runs", "results", "*")
EXTREMES = ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")
PLACES: tuple[Place, ...] = (
    *((*EXPORT, name) for name in ("start_at", "end_at", "created_at", "last_paused_at")),
    *((*EXPORT, "latest_runs", "*", name) for name in ("data_interval_end", "created_at")),
    *((*RUN, name) for name in ("data_interval_start", "data_interval_end", "finished_at")),
)
"""Where the ends of the calendar crashed commands."""


@pytest.fixture(scope="module")
def odd(service_of: StartService) -> Iterator[OddService]:
    running = service_of(SEED, "--dialect", "2026")
    with odd_service(running) as odd:
        yield odd


def restore(odd: OddService) -> None:
    """Restore the service, some days and runs after the seed."""
    odd.place = None
    for method, path, body in (
        ("POST", "reset", None),
        ("POST", "clock", {"set": "2026-06-01T00:10:00Z"}),
        ("PUT", "settings", {"auto_pause": False}),
        (
            "PUT",
            "outcomes",
            [
                {"match": {"name": "Hook", "times": 3}, "status": "Failed", "error": "denied"},
                {"match": {}, "status": "Completed", "records": 100, "seconds": 10},
            ],
        ),
        ("POST", "clock", {"advance_seconds": 5 * 86_400}),
    ):
        odd.http.request(method, f"/_emulator/{path}", json=body).raise_for_status()


def ran(odd: OddService, folder: Path, command: tuple[str, ...]) -> Ran:
    """Run a command, which must not report a bug, and end with a documented code."""
    environ = {
        "RECONCILER_BASE_URL": odd.base_url,
        "RECONCILER_ORGANIZATION": ORGANIZATION,
        "RECONCILER_API_KEY": "phx_admin",
        "HOOK_TOKEN": "token-of-hook",
    }
    result = reconciler(*command, "-C", folder, environ=environ)
    assert result.code in set(ExitCode)
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, {"reconciler.yaml": CONFIGURATION, "a.yaml": json.dumps(DECLARED)})
    Git.init(tmp_path).commit()
    return tmp_path


@pytest.mark.parametrize("value", EXTREMES)
def test_c1_the_ends_of_the_calendar_in_answers(odd: OddService, folder: Path, value: str) -> None:
    restore(odd)
    for place in PLACES:
        odd.place, odd.value = place, value
        for command in COMMANDS if LONG else (("status",), ("gaps",), ("runs", "hook")):
            if command[0] not in WRITING:
                ran(odd, folder, command)


def test_c1_a_command_reads_answers_with_an_odd_value(odd: OddService, folder: Path) -> None:
    """Security 12: an apply makes nothing twice, and deletes nothing."""
    dice = Random(45)  # noqa: S311
    places: dict[tuple[str, ...], list[Place]] = {}
    for command in COMMANDS:
        restore(odd)
        odd.seen.clear()
        ran(odd, folder, command)
        # A wrong number of objects is read again after some seconds: tests/unit/service.
        ends = ("count", "next", "id", "results")
        places[command] = [place for place in odd.seen if len(place) > 1 and place[-1] not in ends]
    before: tuple[str, ...] = COMMANDS[-1]
    for number in range(ANSWERS):
        command = COMMANDS[number % len(COMMANDS)]
        if before[0] in WRITING:
            restore(odd)
        before = command
        odd.place, odd.value = dice.choice(places[command]), dice.choice(ODD)
        ran(odd, folder, command)
        if command[0] == "apply" and not IDENTITY & set(odd.place):
            state = odd.http.get("/_emulator/state").json()
            assert duplicates(state) == []
            assert {"Lake", "Hook"} <= {name.partition("/")[2] for name in identities(state)}
        odd.place = None


def test_c1_files_with_an_odd_value(odd: OddService, folder: Path) -> None:
    restore(odd)
    dice = Random(45)  # noqa: S311
    for _ in range(FILES):
        content = json.loads(json.dumps(DECLARED))
        holder, key = dice.choice(list(_values(content)))
        holder[key] = dice.choice([value for value in ODD if value is not REMOVED])
        write(folder, {"a.yaml": json.dumps(content)})
        validated = ran(odd, folder, ("validate",))
        assert validated.code in (ExitCode.FINE, ExitCode.ERROR)
        if validated.code == ExitCode.FINE:
            ran(odd, folder, ("plan", "--no-inventory"))


def _values(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where the values inside a value are."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield value, key
        yield from _values(value[key])


@pytest.mark.parametrize("value", [*EXTREMES, "0001-01-01", "1899-12-31T23:59:59Z", "2300-01-01"])
@pytest.mark.parametrize("name", ["start_at", "end_at"])
def test_c1_validate_bounds_times(tmp_path: Path, name: str, value: str) -> None:
    export = {"name": "A", "interval": "hour", "destination": {"type": "NoOp"}, name: value}
    files = {
        "reconciler.yaml": "version: 1\n",
        "a.yaml": json.dumps({"batch_exports": {"a": {"project": {"id": 1}, **export}}}),
    }
    result = reconciler("validate", "-C", write(tmp_path, files))
    assert result.code == ExitCode.ERROR
    expected = f"error: {name} of batch_export.a must be from 1900 to 2299, not '{value}'"
    assert f"{expected} [bad-timestamp]" in result.out
    assert "hint: remove it, or use a time in that range" in result.out


@pytest.mark.parametrize("value", ["0001-01-01", [], {"a": 1}, "NaN", True])
def test_c1_a_sample_rate_that_is_none(odd: OddService, folder: Path, value: Any) -> None:
    """A plan compares the live rate with that of the files."""
    content = json.loads(json.dumps(DECLARED))
    content["projects"]["web"]["session_recording_sample_rate"] = 0.7
    write(folder, {"a.yaml": json.dumps(content)})
    restore(odd)
    odd.place, odd.value = ("projects/ID", "session_recording_sample_rate"), value
    assert "session_recording_sample_rate" in ran(odd, folder, ("plan", "--no-inventory")).out
