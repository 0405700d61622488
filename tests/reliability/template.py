"""A process that has imported everything, and forks one process for each command.

It reads a JSON object a line from stdin and answers with one a line:

    {"start": {"words": [...], "environ": {...}, "out": FILE, "terminal": TTY}}  ->  {"pid": 1}
    {"go": pid}    lets the command begin
    {"poll": pid}  ->  {} or, once it ended, {"code": 0}; negative for a signal that ended it
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import sys
from typing import Any, NoReturn

import reconciler
from reconciler.commands import main

_PARTS = ("reconciler.commands", "reconciler.commands", "reconciler.model", "reconciler.render")
_LAZY = ("httpx", "httpcore", "anyio._backends._asyncio", "jsonschema_rs", "msgspec", "orjson")


def _prepare() -> None:
    for name in _LAZY:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if module.name.startswith(_PARTS):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _started(command: dict[str, Any]) -> tuple[int, int]:
    """Fork. Return the process and a pipe that lets it begin."""
    waiting, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        if os.read(waiting, 1):
            os.close(waiting)
            _run(command)
        os._exit(0)
    os.close(waiting)
    return pid, go


def _run(command: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(command["environ"])
    out = os.open(command["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    given = out
    if command["terminal"]:
        os.setsid()
        given = os.open(command["terminal"], os.O_RDWR)
    os.dup2(given if command["terminal"] else os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(given, 2)
    sys.argv = ["reconciler", *command["words"]]
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve() -> None:
    pipes: dict[int, int] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, int] = {}
        if "start" in request:
            answer["pid"], pipe = _started(request["start"])
            pipes[answer["pid"]] = pipe
        elif "go" in request:
            os.write(pipes[request["go"]], b"1")
            os.close(pipes.pop(request["go"]))
        else:
            ended, status = os.waitpid(request["poll"], os.WNOHANG)
            if ended:
                answer["code"] = os.waitstatus_to_exitcode(status)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _prepare()
    _serve()
