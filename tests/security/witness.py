"""Witness what a run of the command does to its surroundings: connections, processes, files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.loopback import Received, serving

_PROCESSES = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile"})
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass
class Witness:
    """What the interpreter did between the start and the end of a block.

    `names` are host names that were looked up, `commands` the words of started processes.
    """

    connections: list[tuple[str, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record an audit event. Raises OSError instead of leaving loopback."""
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            self.opened.append(os.path.realpath(os.fsdecode(arguments[0])))
        elif event == "socket.connect" and isinstance(arguments[1], tuple):
            self.connections.append(arguments[1][:2])
            _stay_on_loopback(arguments[1][0])
        elif event == "socket.getaddrinfo":
            name = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
            self.names.append(name)
            _stay_on_loopback(name)
        elif event == "subprocess.Popen":
            self.commands.append([os.fsdecode(word) for word in arguments[1]])
        elif event in _PROCESSES:
            self.commands.append([event, str(arguments[0])])


def _stay_on_loopback(host: str | None) -> None:
    if host not in _LOOPBACK:
        raise OSError(f"the test does not connect to {host}")


_watching: list[Witness] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching:
        _watching[-1].see(event, arguments)


@contextmanager
def witnessed() -> Iterator[Witness]:
    """Record what the interpreter does in the block."""
    _installed()
    witness = Witness()
    _watching.append(witness)
    try:
        yield witness
    finally:
        _watching.pop()


def _installed(done: list[bool] = []) -> None:  # noqa: B006 - hooks cannot be removed: add one
    if not done:
        sys.addaudithook(_hook)
        done.append(True)


@dataclass(frozen=True)
class Listener:
    """A server of the attacker on loopback, which answers everything and keeps the requests."""

    url: str
    port: int
    requests: list[str]


@contextmanager
def listener() -> Iterator[Listener]:
    """Run a server that answers every request like an empty list."""
    requests: list[str] = []
    body = json.dumps({"count": 0, "next": None, "results": []}).encode()

    def answer(request: Received) -> None:
        requests.append(f"{request.requestline}\n{request.headers}")
        request.send(200, body)

    with serving(answer) as port:
        yield Listener(f"http://127.0.0.1:{port}", port, requests)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, git's own left out."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (Path(parent, name) for name in names):
            if path.is_file() and not path.is_symlink():
                yield path
