"""A pull request reaches no other host, starts no process, and shows no secret of the job."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.security.hostile import CASES, MARK, Case, Site, environ_of, make_site
from tests.security.witness import Listener, Witness, files_below, listener, witnessed
from tests.support.cli import Ran, reconciler
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

_AFTER_MERGE = "takes effect after the merge"
_READS = frozenset(
    {
        "rev-parse",
        "merge-base",
        "rev-list",
        "cat-file",
        "ls-tree",
        "ls-files",
        "config",
        "for-each-ref",
    }
)
"""Commands of git that read, and start nothing with the settings of `Repository`."""
_ENCODED = [
    base64.b64encode(bytes(skipped) + MARK.encode()).decode()[-(-skipped * 8 // 6) :][:7]
    for skipped in range(3)
]
"""The canary in base64, wherever it begins in the text. Seven characters depend on nothing else."""


@pytest.fixture(scope="module")
def evil() -> Iterator[Listener]:
    with listener() as running:
        yield running


def _commands(site: Site) -> list[list[str]]:
    """Return the commands of a pipeline on the workspace of a site. Short runs use some of them."""
    folder = ["-C", str(site.folder)]
    plan = ["plan", *folder, "--out", str(site.touched.parent / "plan.json")]
    return [
        plan,
        ["import", *folder, "--dry-run"],
        *([["mv", *folder, "web", "web-2", "--diff"]] if LONG else []),
        *([["validate", *folder], ["show", *folder, "web"]] if LONG else []),
    ]


def _is_leaked(text: str) -> bool:
    """Return whether a text contains a canary, plainly or in base64."""
    return MARK in text.lower() or any(form in text for form in _ENCODED)


def _check(site: Site, ran: Ran, seen: Witness, *, key: str) -> None:
    """Assert that a run stayed inside its bounds."""
    trusted = ("127.0.0.1", int(site.running.base_url.rpartition(":")[2]))
    assert not site.evil.requests
    assert set(seen.connections) <= {trusted}
    assert set(seen.names) <= {"127.0.0.1"}
    assert not list(site.touched.iterdir())
    for command in seen.commands:
        assert command[0] == "git", command
        assert _READS & set(command), command
    foreign = [
        path
        for path in seen.opened
        if path.startswith((str(site.outside), "/proc/"))
        or path == str(site.git.folder / ".git/config")
    ]
    assert not foreign
    written = [
        path.read_text(errors="replace")
        for path in files_below(site.touched.parent)
        if path.name == "plan.json"
    ]
    for text in (ran.out, ran.err, *written):
        assert not _is_leaked(text), text
        assert site.running.api_key not in text
    for request in site.running.requests():
        assert request["method"] == "GET"
        assert request["key"] == key
        assert not _is_leaked(request["path"] + request["query"])


@pytest.fixture
def key(emulator: RunningEmulator) -> str:
    """Return the fingerprint of the key of the job."""
    emulator.call("GET", "/api/users/@me/")
    (request,) = emulator.requests()
    emulator.clear_requests()
    return request["key"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_hostile_workspace_does_no_harm_on_a_pull_request(
    case: Case, tmp_path: Path, evil: Listener, emulator: RunningEmulator, key: str
) -> None:
    site = make_site(case, tmp_path, evil, emulator)
    evil.requests.clear()
    for path in site.touched.iterdir():  # left by the commands that made the site
        path.unlink()
    for words in _commands(site):
        with witnessed() as seen:
            ran = reconciler(*words, environ=environ_of(case, site))
        _check(site, ran, seen, key=key)
        if words[0] == "plan":
            assert ran.code == (1 if case.expected == "error" else 0)
            assert _AFTER_MERGE in ran.out or case.expected != "warning"


def _made(name: str, folder: Path, evil: Listener, emulator: RunningEmulator) -> Site:
    (case,) = [case for case in CASES if case.name == name]
    return make_site(case, folder, evil, emulator)


def test_the_witness_sees_requests_and_processes_of_a_trusted_workspace(
    tmp_path: Path, evil: Listener, emulator: RunningEmulator
) -> None:
    """Make sure that the other tests would fail."""
    evil.requests.clear()
    environ = {"PIPELINE_KEY": MARK, "RECONCILER_ALLOW_EXEC": "1", "CI": "true"}
    site = _made("other host, trusted key", tmp_path / "one", evil, emulator)
    with witnessed() as seen:
        reconciler("plan", "-C", site.folder, "--trust-workspace", environ=environ)
    assert MARK in "".join(evil.requests)
    assert ("127.0.0.1", evil.port) in seen.connections
    assert str(site.folder / "web.yaml") in seen.opened
    site = _made("key from a command", tmp_path / "two", evil, emulator)
    environ |= {"RECONCILER_BASE_URL": emulator.base_url, "RECONCILER_ORGANIZATION": "o"}
    with witnessed() as seen:
        reconciler("plan", "-C", site.folder, "--trust-workspace", environ=environ)
    assert "sh" in [command[0] for command in seen.commands]
    assert [path.name for path in site.touched.iterdir()] == ["ran"]
    for skipped in range(3):
        encoded = base64.b64encode(bytes(skipped) + f"{MARK} more".encode()).decode()
        assert _is_leaked(f"text {encoded} text")


def test_modules_in_the_current_folder_are_not_imported(
    tmp_path: Path, evil: Listener, emulator: RunningEmulator
) -> None:
    site = _made("modules for the interpreter", tmp_path, evil, emulator)
    command = Path(sys.executable).with_name("reconciler")
    words = [str(command), "validate"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ended = subprocess.run(
        words, cwd=site.folder, env=environ, capture_output=True, timeout=TIMEOUT, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert not list(site.touched.iterdir())
