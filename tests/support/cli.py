"""Run the command line in this process, or in a process of its own."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.commands import main
from tests.support.limits import TIMEOUT, limited

_INHERITED = (
    *("PATH", "HOME", "LANG", "COVERAGE_PROCESS_START"),
    # Windows finds its libraries and folders by these.
    *("SYSTEMROOT", "USERPROFILE", "TEMP"),
)
_STATUS = re.compile(r"^(?:Reading|Applying|Verifying) {2,}(?!.*waiting).*\n", re.MULTILINE)
SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_SERVING = frozenset({"emulator", "demo"})
"""Commands that serve requests or start services: always a process of their own."""


@dataclass(frozen=True)
class Ran:
    """How a command ended. `err` is without what only a slow machine gets to see."""

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
    with _isolated(environment(environ)) as patch, limited():
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
        env=environment(environ),
        input=None if stdin is None else stdin.encode(),
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return _checked(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, by name; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a command: without those of the job that runs the tests."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **(environ or {})}


def _checked(code: object, out: str, err: str) -> Ran:
    assert isinstance(code, int)
    assert "Traceback" not in err, err
    assert "this is a bug" not in err, err
    return Ran(code, out, without_progress(err))


def without_progress(err: str) -> str:
    """Return a standard error without the status lines of a command that takes seconds."""
    return _STATUS.sub("", err)


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
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
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
