"""Run `reconciler` in forks of one process that has imported it, which saves its start.

A command still is a process of its own, with its arguments, variables, folder and streams.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import select
import socket
import sys
import traceback

import reconciler
from reconciler.commands import main

_SEPARATOR = "\0"
_CLIENT = """\
import os, socket, sys
words = [os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:]]
words += [f"{{name}}={{value}}" for name, value in os.environ.items()]
message = os.fsencode("\\0".join(words))
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    socket.send_fds(server, [len(message).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(message)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


def client(path: str) -> str:
    """Return the program of a client: the arguments are those of `reconciler`."""
    return f"#!{sys.executable} -IS\n{_CLIENT.format(path=path)}"


def serve(path: str) -> None:
    """Run one command at a time, until standard input ends."""
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.startswith(("reconciler.emulator", "reconciler.__main__")):
            importlib.import_module(module.name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                _answer(connection)


def _answer(connection: socket.socket) -> None:
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    message = b""
    while len(message) < int.from_bytes(size, "big"):
        message += connection.recv(1 << 16)
    process = os.fork()
    if process == 0:
        _run(os.fsdecode(message).split(_SEPARATOR), streams)
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(process, 0)
    connection.sendall(bytes([abs(os.waitstatus_to_exitcode(status)) & 255]))


def _run(words: list[str], streams: list[int]) -> None:
    """Be the command, and end."""
    code: object = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        # The streams of the server may be seekable files, which these are not.
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        folder, count, *rest = words
        os.chdir(folder)
        os.environ.clear()
        for word in rest[int(count) :]:
            name, _, value = word.partition("=")
            os.environ[name] = value
        sys.argv = ["reconciler", *rest[: int(count)]]
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - otherwise os._exit hides it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 70)


if __name__ == "__main__":
    serve(sys.argv[1])
