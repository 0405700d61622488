"""What the processes of tests run: `tests.support.emulator` and `processes` start them."""

from __future__ import annotations

import importlib
import io
import marshal
import os
import pkgutil
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import reconciler
from reconciler.commands import main
from reconciler.emulator.server import command

# Processes are forked from one that has imported this, and so everything.
for _name in ("httpx", "httpcore", "anyio._backends._asyncio", "jsonschema_rs", "msgspec"):
    importlib.import_module(_name)
for _module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
    if _module.name.startswith(("reconciler.commands", "reconciler.model", "reconciler.render")):
        importlib.import_module(_module.name)

_CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate", "shutil.move")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class _Ready(io.TextIOBase):
    """A standard output whose lines go to the process that waits for the service."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, text: str) -> int:
        self._connection.send(text)
        return len(text)


def serve(options: list[str], connection: Connection) -> None:
    """Be `reconciler emulator` with these options."""
    sys.stdout = _Ready(connection)
    command(options)


def run(
    words: Sequence[str],
    environ: Mapping[str, str],
    out: Path,
    terminal: str | None = None,
    killed_at: tuple[Path, int] | None = None,
) -> None:
    """Be the command line, with a file for what it prints, or a terminal for all but the output.

    `killed_at` is a folder and the number, from 1, of the operation that writes in it at which the
    process ends with 137.
    """
    given = printed = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if terminal is not None:
        os.setsid()
        given = os.open(terminal, os.O_RDWR)
    if killed_at is not None:
        _kill_at(*killed_at)
    read = given if terminal else os.open(os.devnull, os.O_RDONLY)
    os._exit(_ended(words, environ, (read, printed, given)))


def run_each(server: socket.socket) -> None:
    """Run a command for each connection, in a process of its own.

    A connection has the streams of the command, its folder, its variables and its words.
    """
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            message, streams, *_ = socket.recv_fds(connection, 1 << 20, 3)
            folder, environ, words = marshal.loads(message)  # noqa: S302 - of `reconciler` in tests
            os.chdir(folder)
            connection.send(bytes([_ended(words, environ, streams)]))
            os._exit(0)
        connection.close()
        os.waitpid(-1, os.WNOHANG)


def _ended(words: Sequence[str], environ: Mapping[str, str], streams: Iterable[int]) -> int:
    """Run the command line with these streams, and return the exit code."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None
    sys.argv = ["reconciler", *words]
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _kill_at(folder: Path, number: int) -> None:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if (is_write or event in _CHANGING) and str(arguments[0]).startswith(str(folder)):
            seen += 1
            if seen == number:
                os._exit(137)

    sys.addaudithook(hook)
