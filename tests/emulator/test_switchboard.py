"""The switchboard, the options of the command, and what protects a local service."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.emulator.server import command
from tests.emulator.facts import Api, fact
from tests.support.emulator import start_emulator
from tests.support.limits import limited, time_limit


def refusal(*options: str) -> str:
    """Return why the command refuses its options, in this process."""
    with limited():
        ended = CliRunner().invoke(command, options)
    assert ended.exit_code == 1
    return ended.output


@fact(
    "switchboard", "the request log masks secrets; the state shows their fingerprints", "interface"
)
def test_inspection(api: Api) -> None:
    api.create()
    for path in ("requests", "state"):
        text = json.dumps(api.emulator.admin("GET", path))
        assert "hidden" not in text
        assert "phx_" not in text
        assert "salted:" in text


@pytest.mark.parametrize(
    ("value", "windows"),
    [((), [(480, 60), (4800, 3600)]), (("5/1,7/2.5",), [(5, 1), (7, 2.5)])],
)
def test_the_options_for_limits_and_hosts(
    value: tuple[str, ...], windows: list[tuple[float, float]]
) -> None:
    with start_emulator(extra=("--allow-host", "posthog.test", "--throttle", *value)) as running:
        answer = running.http.get("/_emulator/throttle", headers={"Host": "posthog.test:8000"})
    assert answer.status_code == 200
    limits = answer.json()["windows"]
    assert [(window["calls"], window["seconds"]) for window in limits] == windows


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        *(
            ("outcomes", [rule])
            for rule in (
                *({"status": "Lost"}, {"state": "Failed"}, {"match": {"id": "x"}}),
                *({"rows": []}, {"seconds": -1}),
            )
        ),
        *(
            ("settings", sent)
            for sent in (
                *({"jitter": 1}, {"jitter_seconds": "1"}, {"jitter_seconds": -1}),
                *({"auto_pause": "yes"}, {"first_data_at": "soon"}),
            )
        ),
        ("test_steps", [{"status": "Nope"}]),
        ("test_steps", [{"status": "Failed", "destination": "Postgres"}]),
        ("test_steps", [{"status": "Failed", "step": "Check nothing"}]),
    ],
    ids=str,
)
def test_what_the_switchboard_refuses_changes_nothing(emulators, part: str, sent: object) -> None:
    running = emulators["2026"]
    before = running.admin("GET", part)
    answer = running.http.put(f"/_emulator/{part}", json=sent)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert running.admin("GET", part) == before


# The guard


@pytest.mark.parametrize(
    ("host", "is_served"),
    [
        *((host, True) for host in ("localhost", "127.0.0.1:1", "127.9.9.9", "[::1]:8000")),
        *((host, False) for host in ("rebound.example", "rebound.example:80", "10.0.0.1", "")),
        # The emulator puts the Host into links (security N8).
        *((f"{host}@evil.example", False) for host in ("127.0.0.1:8000", "[::1]")),
        *((host, False) for host in ("127.0.0.1/x", "127.0.0.1:8000:1")),
    ],
)
@pytest.mark.parametrize("path", ["/_emulator/state", "/api/organizations/"])
def test_only_loopback_names_are_served(
    emulators, host: str, path: str, *, is_served: bool
) -> None:
    headers = {"Host": host, "Authorization": "Bearer phx_all"}
    answer = emulators["interface"].http.get(path, headers=headers)
    assert answer.status_code == (200 if is_served else 403)
    assert is_served or "--allow-host" in answer.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        *({"Origin": own} for own in ("https://evil.example", "null", "http://localhost:1")),
        # Requests of other sites (security N8).
        *({"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["reset", "clock", "snapshots/a"])
def test_security_n8_foreign_origins_and_sites_are_refused(
    emulators, headers: dict[str, str], path: str
) -> None:
    running = emulators["interface"]
    for method in ("GET", "POST") if "Sec-Fetch-Site" in headers else ("POST",):
        answer = running.http.request(
            method, f"/_emulator/{path}", headers=headers, content=b'{"advance_seconds": 1}'
        )
        assert answer.status_code == 403
    for own in (
        {"Origin": running.base_url},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ):
        assert running.http.get("/_emulator/clock", headers=own).status_code == 200


def test_security_n8_a_link_is_not_a_database(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("text")
    target.chmod(0o644)
    (tmp_path / "service.db").symlink_to(target)
    assert refusal("--db", str(tmp_path / "service.db"))
    assert target.read_text() == "text"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_files_are_private(tmp_path: Path) -> None:
    db = tmp_path / "service.db"
    db.write_bytes(b"")
    db.chmod(0o644)
    with start_emulator(db=db) as running:
        running.call("GET", "/api/organizations/")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert "service.db-wal" in modes


def test_fingerprints_are_salted_per_start(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        "organizations:\n- {name: O, projects: [{name: P}]}\nkeys:\n- {value: phx_same}\n"
    )
    keys = []
    for _ in range(2):
        with start_emulator(seed=seed) as running:
            running.call("GET", "/api/organizations/")
            running.call("GET", "/api/organizations/")
            first, second = running.requests()
            assert first["key"] == second["key"]
            keys.append(first["key"])
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--throttle", "often"), "'often' is not CALLS/SECONDS"),
        (("--db", "missing/service.db"), "No such file or directory"),
        (("--port", "TAKEN"), "cannot listen"),
        (("--seed", "nonsense"), "a seed must be a mapping with `organizations`"),
        (("--seed", "{"), "seed"),
        (
            ("--seed", "organizations: [{projects: [{name: P, batch_exports: [{name: X}]}]}]"),
            "export 'X'",
        ),
        (
            ("--seed", "{organizations: [{name: O}], keys: [{value: k, user: no@e.example}]}"),
            "unknown user 'no@e.example' of a key",
        ),
    ],
    ids=str,
)
def test_options_that_are_not_valid(
    emulators,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    option, value = words
    if option == "--seed":
        (tmp_path / "seed.yaml").write_text(value)
        value = "seed.yaml"
    port = emulators["interface"].base_url.rpartition(":")[2]
    assert message in refusal(option, value.replace("TAKEN", port))


def test_on_a_terminal_the_connection_is_printed_as_commands(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("organizations: [{id: o 1, projects: [{name: P}]}]\nkeys: [{value: phx_a}]\n")
    terminal, stdout = pty.openpty()
    words = [sys.executable, "-m", "reconciler", "emulator", "--seed", str(seed)]
    with subprocess.Popen(words, stdout=stdout) as process, time_limit(process):
        # If it ends before, reading is an error.
        os.close(stdout)
        text = b""
        while not text.endswith(b"phx_a\r\n"):
            text += os.read(terminal, 1024)
        process.terminate()
    os.close(terminal)
    address, *rest = text.decode().splitlines()
    assert address.startswith("export RECONCILER_BASE_URL=http://127.0.0.1:")
    assert rest == ["export RECONCILER_ORGANIZATION='o 1'", "export RECONCILER_API_KEY=phx_a"]
