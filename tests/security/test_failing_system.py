"""Files, folders and streams that fail: an error that names them, never a bug of the program."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.editing.writing import check_regular
from tests.conftest import LONG
from tests.support.cli import Ran, reconciler, write
from tests.support.devices import NEEDS_FULL_DISK, full_disk
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

FILES = {
    "reconciler.yaml": "version: 1\n",
    "exports/web.yaml": "projects:\n  web: {name: Web}\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "workspace", FILES)


def assert_refused(ran: Ran, *texts: str) -> None:
    assert ran.code == 1, ran
    assert "error: " in ran.err + ran.out
    for text in texts:
        assert text in ran.err + ran.out, ran


@contextmanager
def without_privileges() -> Iterator[None]:
    """Let file modes apply to this process, also if its user is root."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("the modes of files do not apply to root")
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    # Effective, permitted and inheritable; 1 and 2 override the modes of files.
    reduced = (ctypes.c_uint32 * 6)(before[0] & ~0b110, *before[1:])
    assert libc.capset(header, reduced) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


@pytest.mark.parametrize(
    "command",
    [("validate",), ("mv", "web", "shop"), ("show", "web"), ("import",), ("apply",)],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["reconciler.yaml", "exports", "exports/web.yaml", "."])
def test_security_19_what_may_not_be_read_is_named(
    workspace: Path, emulator: RunningEmulator, name: str, command: tuple[str, ...]
) -> None:
    (workspace / name).chmod(0)
    try:
        with without_privileges():
            ran = reconciler(*command, "-C", workspace, environ=emulator.environ())
    finally:
        (workspace / name).chmod(0o700)
    assert_refused(ran, name if name != "." else "Permission denied")
    assert "init" not in ran.err
    assert emulator.writes() == []


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("reconciler.yaml", lambda path: path.mkdir()),
        ("reconciler.yaml", lambda path: path.symlink_to(path.name)),
        ("exports/a.yaml", lambda path: path.mkdir()),
        ("exports/a.yaml", lambda path: path.symlink_to(path.name)),
        ("exports/loop", lambda path: path.symlink_to("../exports")),
    ],
    ids=["folder", "loop", "folder as file", "link to itself", "link to its folder"],
)
@pytest.mark.parametrize("command", ["validate", "plan", "import"])
def test_security_19_odd_files(
    workspace: Path, emulator: RunningEmulator, name: str, make, command: str
) -> None:
    path = workspace / name
    path.unlink(missing_ok=True)
    make(path)
    ran = reconciler(command, "-C", workspace, environ=emulator.environ())
    assert ran.code in (0, 1)
    if name == "reconciler.yaml":
        assert_refused(ran, name)
        assert "init" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        *(("plan", "-C", name) for name in ("x" * 300, "a/b", "file")),
        *(("show", name) for name in ("x" * 300, "workspace/reconciler.yaml/plan.json")),
        ("apply", "loop", "-C", "workspace"),
        *(("init", "-C", name) for name in ("file", "file/below", "x" * 300, "loop")),
        *(
            (*words, "-C", "workspace", option, name)
            for words, option, names in (
                (("import",), "--into", ("x" * 300, "reconciler.yaml")),
                (("plan",), "--out", ("x" * 300, "none/plan", "file/plan", "loop")),
                (("apply", "--auto-approve"), "--log-file", ("x" * 300, "file/log", "loop")),
            )
            for name in names
        ),
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_security_19_paths_that_the_system_refuses(
    workspace: Path,
    emulator: RunningEmulator,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(workspace.parent)
    Path("file").touch()
    Path("loop").symlink_to("loop")
    before = sorted(Path().rglob("*"))
    ran = reconciler(*arguments, environ=emulator.environ())
    assert ran.code in (1, 64), ran
    assert emulator.writes() == []
    assert sorted(Path().rglob("*")) == before


# Files that we write


def plan_into(workspace: Path, out: str | Path, emulator: RunningEmulator) -> Ran:
    return reconciler("plan", "-C", workspace, "--out", out, environ=emulator.environ())


def test_a_plan_is_written_to_a_file_with_the_longest_name(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    """Draft files once had the name and the process id, so that it depended on the id."""
    out = tmp_path / ("x" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    ran = plan_into(workspace, out, emulator)
    assert ran.code == 0, ran.err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [out.name]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_experience_25_a_plan_goes_to_stdout(workspace: Path, emulator: RunningEmulator) -> None:
    ran = plan_into(workspace, "-", emulator)
    assert ran.code == 0
    assert json.loads(ran.out)["format_version"]
    assert "Plan: 1 to create" in ran.err
    assert not Path("-").exists()
    saved = write(workspace.parent, {"plan.json": ran.out}) / "plan.json"
    applied = reconciler("apply", saved, "-C", workspace, environ=emulator.environ())
    assert applied.code == 0, applied


@NEEDS_FULL_DISK
def test_experience_25_a_device_is_not_replaced() -> None:
    # Not with the command: where the check is missing, root would replace the device.
    with pytest.raises(OSError, match="it is not a regular file"):
        check_regular(Path("/dev/full"))


@pytest.mark.parametrize(
    ("make", "code"),
    [(os.mkfifo, 1), (Path.mkdir, 64), (lambda out: out.symlink_to(out.with_name("target")), 1)],
    ids=["fifo", "folder", "link"],
)
def test_experience_25_only_regular_files_are_replaced(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path, make, code: int
) -> None:
    target, out = tmp_path / "target", tmp_path / "out"
    target.write_text("old")
    make(out)
    before = out.lstat()
    ran = plan_into(workspace, out, emulator)
    assert (ran.code, "saved" in ran.err) == (code, False)
    assert out.lstat().st_ino == before.st_ino
    assert target.read_text() == "old"


def test_a_saved_plan_replaces_an_older_one_and_is_private(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    out = tmp_path / "plan.json"
    out.write_text("old")
    out.chmod(0o666)
    os.link(out, tmp_path / "same file")
    assert plan_into(workspace, out, emulator).code == 0
    assert mode_of(out) == 0o600
    assert (tmp_path / "same file").read_text() == "old"


@pytest.mark.parametrize(
    "words",
    [
        *(f"plan --out {name}" for name in ("exports/web.yaml", "new.YML", "link", "q.sql")),
        *(f"status -e * --html {name}" for name in ("reconciler.yaml", "q.sql")),
        "plan -e * --out .",
        *(f"{word} -y --log-file q.sql" for word in ("apply", "pause web", "backfill web --gaps")),
    ],
)
def test_no_file_of_the_workspace_is_written_to(
    workspace: Path, emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    texts = "projects: {web: {name: '${file:q.sql}', app_urls: ['${file:default.json}']}}\n"
    write(workspace, {"exports/web.yaml": texts, "q.sql": "Q", "default.json": "{}"})
    (workspace / "link").symlink_to("q.sql")
    before = {path: path.read_text() for path in workspace.rglob("*.*")}
    monkeypatch.chdir(workspace)
    ran = reconciler(*words.split(), environ=emulator.environ())
    assert (ran.code, "is a file that the workspace loads" in ran.err) == (64, True), ran
    assert {path: path.read_text() for path in workspace.rglob("*.*")} == before
    assert emulator.writes() == []


def test_experience_6_new_files_of_import_and_init_have_the_mode_of_the_umask(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    umask = os.umask(0o022)
    os.umask(umask)
    expected = 0o666 & ~umask
    assert reconciler("init", "-C", tmp_path).code == 0
    for path in tmp_path.rglob("*.*"):
        assert path.is_dir() or mode_of(path) == expected, path
    emulator.call("POST", f"/api/organizations/{emulator.organization}/projects/", {"name": "New"})
    before = set(tmp_path.rglob("*.yaml"))
    ran = reconciler("import", "-C", tmp_path, environ=emulator.environ())
    assert ran.code == 0, ran.err
    written = set(tmp_path.rglob("*.yaml")) - before
    assert written
    assert {mode_of(path) for path in written} == {expected}


@pytest.mark.parametrize("target", [".git/config", ".git/hooks/pre-commit", "missing.yaml"])
def test_security_17_import_and_init_do_not_follow_links(tmp_path: Path, target: str) -> None:
    write(tmp_path, {".git/config": "x", ".git/hooks/sample": "x"})
    (tmp_path / "reconciler.yaml").symlink_to(target)
    ran = reconciler("init", "-C", tmp_path)
    assert ran.code == 1
    assert (tmp_path / ".git/config").read_text() == "x"
    assert not (tmp_path / ".git/hooks/pre-commit").exists()
    assert not (tmp_path / "missing.yaml").exists()


def test_experience_18_a_full_disk_leaves_the_old_files(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    untidy = "projects:\n  web:   {name: Web}\n\n\n\n"
    workspace = write(tmp_path / "workspace", {"reconciler.yaml": "version: 1\n", "a.yaml": untidy})
    log = ("apply", "-C", workspace, "--auto-approve", "--log-file", tmp_path / "log")
    for arguments in (
        ("plan", "-C", workspace, "--out", tmp_path / "plan.json"),
        ("mv", "-C", workspace, "web", "shop"),
        ("import", "-C", workspace),
        ("init", "-C", tmp_path / "new"),
        log,
    ):
        with full_disk():
            ran = reconciler(*arguments, environ=emulator.environ())
        assert_refused(ran, "File too large")
    assert emulator.writes() == []
    assert (workspace / "a.yaml").read_text() == untidy
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {"reconciler.yaml", "a.yaml", "log"}


# Streams

COMMANDS = [["plan"], ["--help"], ["plan", "--out", "-"], ["import", "--dry-run"], ["--version"]]


def with_streams(
    command: list[str], redirection: str, emulator: RunningEmulator, workspace: Path
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a shell that closes or redirects its streams."""
    here = [] if command[0] in ("explain", "--help", "--version") else ["-C", str(workspace)]
    line = f'exec "$@" {redirection}'
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", sys.executable, "-m", "reconciler", *command, *here],
        env={"PATH": os.environ["PATH"], **emulator.environ()},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )


_NO_OUTPUT = {"> /dev/full": b"No space left on device", ">&-": b"Bad file descriptor"}


@NEEDS_FULL_DISK
@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-", "2>&-", "2> /dev/full", "<&-"])
def test_experience_18_streams_that_fail(
    workspace: Path, emulator: RunningEmulator, redirection: str
) -> None:
    reason = _NO_OUTPUT.get(redirection)
    for command in COMMANDS if LONG else COMMANDS[: 3 if redirection == "> /dev/full" else 1]:
        ran = with_streams(command, redirection, emulator, workspace)
        output = ran.stdout + ran.stderr
        for text in (b"Traceback", b"bug in reconciler", b"Exception ignored"):
            assert text not in output, (command, output)
        assert ran.returncode == (0 if reason is None else 1), (command, output)
        if reason is not None:
            assert b"the standard output can't be written: " + reason in output


# Plan files


def test_security_19_malformed_plan_files(
    workspace: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    assert plan_into(workspace, saved, emulator).code == 0
    plan = json.loads(saved.read_text())
    for number, raw in enumerate(malformed(plan)):
        file = tmp_path / f"{number}.json"
        file.write_bytes(raw)
        for command in (("show", file), ("apply", file, "-C", workspace)):
            ran = reconciler(*command, environ=emulator.environ())
            assert ran.code == 1, (raw[:200], ran)
    assert emulator.writes() == []


def malformed(plan: dict[str, Any]) -> Iterator[bytes]:
    """Yield files that are not plans, and plans with values of other types."""
    yield from (b"", b"\xff\xfe", b"null", b"[]", b"{}", b"{", b'"x"', b"1e999", b"\0" * 9)
    yield b"[" * 100_000
    yield b'{"format_version":' * 5_000
    yield b'{"format_version": 1' + b"0" * 5_000 + b"}"
    odd: list[Any] = [None, 10**30, -1, "\ud800", [], {"a": {}}, True]
    keys = list(plan) if LONG else list(plan)[::3]
    for name in keys:
        # Notes are not part of the digests: a plan without them is a plan.
        others = [value for value in odd if value != plan[name] and (value or name != "notes")]
        yield from (json.dumps({**plan, name: value}).encode() for value in others)
    for name in list(plan["changes"][0]) if LONG else list(plan["changes"][0])[::4]:
        change = {**plan["changes"][0], name: odd}
        yield json.dumps({**plan, "changes": [change]}).encode()
    deep: Any = "x"
    for _ in range(900):
        deep = [deep]
    yield json.dumps({**plan, "source": deep}).encode()
