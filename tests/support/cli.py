"""Run the command line in this process, or in a process of its own."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli import main

TIMEOUT = 120
"""Seconds until a command that does not end fails its test."""
_INHERITED = (
    *("PATH", "HOME", "LANG", "COVERAGE_PROCESS_START"),
    # Windows finds its libraries and folders by these.
    *("SYSTEMROOT", "USERPROFILE", "TEMP"),
)
_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_SERVING = frozenset({"emulator", "demo"})
"""Commands that serve requests or start services: always a process of their own."""


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


def reconciler(
    *arguments: str | Path,
    environ: Mapping[str, str] | None = None,
    stdin: str | None = None,
    terminal: bool = False,
) -> Ran:
    """Run a command in this process with only the variables of `environ`.

    With `terminal`, its standard output and error are terminals. Fails on a traceback.
    """
    words = [str(argument) for argument in arguments]
    if words and words[0] in _SERVING:
        return reconciler_process(*words, environ=environ, stdin=stdin)
    out, err = _stream(terminal=terminal), _stream(terminal=terminal)
    with _isolated(_environment(environ)) as patch, _timeout():
        patch.setattr(sys, "argv", ["reconciler", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((stdin or "").encode()), "utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main()
    return _checked(ended.value.code, _written(out), _written(err))


def reconciler_process(
    *arguments: str | Path, environ: Mapping[str, str] | None = None, stdin: str | None = None
) -> Ran:
    """Run a command as a process, for tests of start-up, signals and streams."""
    ended = subprocess.run(
        [sys.executable, "-m", "reconciler", *map(str, arguments)],
        env=_environment(environ),
        input=None if stdin is None else stdin.encode(),
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return _checked(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@contextmanager
def time_limit(process: subprocess.Popen[Any], seconds: float = TIMEOUT) -> Iterator[None]:
    """Kill a process that takes longer than the block may, and fail the test."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, expire)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if expired.is_set():
            pytest.fail(f"the process did not end within {seconds} seconds")


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, by name; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _environment(environ: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **(environ or {})}


def _checked(code: object, out: str, err: str) -> Ran:
    assert isinstance(code, int)
    assert "Traceback" not in err, err
    assert "this is a bug" not in err, err
    return Ran(code, out, err)


class _Stream(io.TextIOWrapper):
    """A standard stream that keeps what is written to it."""

    terminal = False

    def isatty(self) -> bool:
        return self.terminal


def _stream(*, terminal: bool) -> _Stream:
    stream = _Stream(io.BytesIO(), encoding="utf-8", newline="")
    stream.terminal = terminal
    return stream


def _written(stream: _Stream) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _isolated(environ: Mapping[str, str]) -> Iterator[pytest.MonkeyPatch]:
    """Set the environment; afterwards restore it, the folder, the streams and signal handlers."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    folder = Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environ.keys():
            patch.delenv(name)
        for name, value in environ.items():
            patch.setenv(name, value)
        try:
            yield patch
        finally:
            os.chdir(folder)
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextmanager
def _timeout() -> Iterator[None]:
    """Fail the test where a command does not end, on systems that have an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def fail(*_: object) -> None:
        pytest.fail(f"the command did not end within {TIMEOUT} seconds")

    former = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
