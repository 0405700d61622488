"""Run `reconciler` in forks of one process that has imported it, which saves its start.

A command still is a process of its own, with its arguments, variables, folder and streams.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import socket
import sys
import traceback
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer

import reconciler
from reconciler.commands import main

CLIENT = f"""\
#!{sys.executable} -IS
import json, os, socket, sys
words = json.dumps([os.getcwd(), dict(os.environ), *sys.argv[1:]]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect("PATH")
    socket.send_fds(server, [b" "], [0, 1, 2])
    server.sendall(words)
    server.shutdown(socket.SHUT_WR)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


class _Command(BaseRequestHandler):
    """Is the command, and ends with the process that handles the connection."""

    def handle(self) -> None:
        message, streams, _, _ = socket.recv_fds(self.request, 1, 3)
        while part := self.request.recv(1 << 16):
            message += part
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        # The streams of the server may be seekable files, which these are not.
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        folder, environ, *words = json.loads(message)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = ["reconciler", *words]
        code: object = 70
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        except BaseException:  # noqa: BLE001 - otherwise the end of the process hides it
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        self.request.sendall(bytes([code if isinstance(code, int) else 70]))


class _Server(ForkingMixIn, UnixStreamServer):
    pass


if __name__ == "__main__":
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.startswith(("reconciler.emulator", "reconciler.__main__")):
            importlib.import_module(module.name)
    with _Server(sys.argv[1], _Command) as server:
        os.write(1, b"ready\n")
        server.serve_forever()
