"""Run commands against a service whose answers are changed at random, on virtual time.

A process of its own, so that its memory can be measured:
`python -m tests.security.mutating DIALECT FIRST_SEED ANSWERS FOLDER`
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reconciler.commands.backfill.planning import Span
from reconciler.commands.backfill.starting import backfill
from reconciler.commands.import_ import remarks_on_import
from reconciler.commands.import_live import import_live
from reconciler.commands.workspace import Workspace
from reconciler.errors import ReconcilerError
from reconciler.model.plan import encode
from reconciler.render import formats_of, writer_of
from reconciler.render.options import DEFAULTS
from reconciler.render.progress import report_as_text
from tests.reliability.accounting import duplicates, unasked_deletes
from tests.reliability.runs import Applier, applier
from tests.reliability.scenarios import Scenario, http, noop, small
from tests.reliability.service import Service, running_service
from tests.security.memory import peak_megabytes
from tests.support.cli import write
from tests.support.virtual_loop import run_virtually

Dice = random.Random
MOST_SECONDS = 3_600
"""Virtual seconds that a command may take."""
COMMANDS = ("plan", "apply", "import", "backfill")
ANSWERS = {"plan": 3, "apply": 16, "import": 3, "backfill": 3}
"""About how many answers a command gets."""

_NESTED: Any = json.loads("[" * 60 + "]" * 60)
_ODD: tuple[Any, ...] = (None, True, 1.5, [], [1], {}, {"a": 1}, _NESTED)
_VALUES: tuple[Any, ...] = (
    *_ODD,
    *(False, 0, -1, 10**12, 10**400, 1e308, "", "x", "0", "2026-13-45T99:00:00Z"),
    *("\u202e##[x]", "\ud800", "\x00", "9" * 5_000, "a\n::b::", [None], [{}], [["a"]], {"": None}),
)
_IDENTITY = frozenset({"id", "name", "team_id", "organization"})
"""A wrong value of the right type makes an answer one of another object, which nobody can see."""
_RAW = (b"", b"<html>", b"null", b"[]", b"{}", b'"x"', b"0", b"\xff", b'{"detail": 1, "code": 2}')
_STATUSES = (200, 201, 204, 302, 400, 401, 404, 409, 422, 500, 502)


def mutated_json(dice: Dice, value: Any) -> Any:
    """Return a copy of a value with a change at a random place."""
    root = [copy.deepcopy(value)]
    holder: Any = root
    at: Any = 0
    while isinstance(holder[at], dict | list) and holder[at] and dice.random() < 0.8:
        holder = holder[at]
        at = dice.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    change = dice.choice(("replace", "replace", "replace", "remove", "repeat", "wrap"))
    if change == "remove" and holder is not root:
        del holder[at]
    elif change == "repeat" and isinstance(holder, list) and holder is not root:
        holder.insert(at, holder[at])
    elif change == "wrap":
        holder[at] = [holder[at]]
    else:
        holder[at] = dice.choice(_ODD if at in _IDENTITY else _VALUES)
    return root[0]


def mutated(dice: Dice, status: int, body: bytes) -> tuple[int, bytes]:
    """Return another status or another body."""
    change = dice.random()
    if change < 0.06:
        return dice.choice(_STATUSES), body
    if change < 0.12:
        return status, dice.choice(_RAW)
    if change < 0.16:
        return status, body[: dice.randrange(len(body) + 1)]
    try:
        value = json.loads(body)
    except ValueError:
        return status, b"?"
    return status, json.dumps(mutated_json(dice, value)).encode()


@dataclass(slots=True)
class Mutator:
    """Passes requests to a service, and changes some answers, counting from `first`."""

    app: ASGIApp
    dice: Dice
    first: int
    answers: int = 0
    count: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: dict[str, Any] = {}
        body = bytearray()

        async def keep(message: Message) -> None:
            start.update(message if message["type"] == "http.response.start" else {})
            body.extend(message.get("body", b""))

        await self.app(scope, receive, keep)
        status, content = start["status"], bytes(body)
        if self.answers == self.first or (self.answers > self.first and self.dice.random() < 0.2):
            status, content = mutated(self.dice, status, content)
            self.count += 1
        self.answers += 1
        content = b"" if status == 204 else content
        headers = [(b"content-type", b"application/json")]
        headers += [(b"content-length", str(len(content)).encode())] * (status != 204)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def scenario_of(dialect: str) -> Scenario:
    """Return a plan of creates, updates and a delete, with live objects of several types."""
    plan = small(dialect)
    web = dict(plan.projects[0])
    bucket = {"bucket_name": "b", "region": "r", "prefix": "p/"}
    if dialect != "2026":
        bucket |= {"aws_access_key_id": "AKIA", "aws_secret_access_key": "s3cret"}
    s3 = {"type": "AwsS3" if dialect == "2026" else "S3", "config": bucket}
    live = http()
    live["destination"]["config"]["token"] = "tok-1"
    web["batch_exports"] = [
        *web["batch_exports"],
        {"name": "Lake", "interval": "hour", "destination": s3, "model": "persons"},
        {"name": "Hook", **live},
    ]
    web["modifiers"] = {"personsOnEventsMode": "disabled"}
    other = {"id": 7, "name": "Other", "batch_exports": [{"name": "N", **noop("n")}]}
    return Scenario(dialect, (web, other), plan.head, deletes=plan.deletes)


async def run(command: str, user: Applier, folder: Path) -> None:
    """Run a command and write its result in every format. Raises ReconcilerError."""
    runtime = user.runtime([])
    if command == "plan":
        planned = await user.plan()
        for name in formats_of("plan"):
            writer_of(name, "plan")(planned, DEFAULTS)
        encode(planned)
    elif command == "apply":
        ran = await user.apply()
        assert ran.code in (0, 1, 3, 4, 5), ran
        if ran.report is not None:
            report_as_text(ran.report)
    elif command == "import":
        empty = write(folder / "empty", {"reconciler.yaml": "version: 1\n"})
        imported = await import_live(Workspace(empty, runtime=runtime))
        for name in formats_of("imported"):
            writer_of(name, "imported")(imported, DEFAULTS)
        remarks_on_import(imported)
    else:
        workspace = Workspace(user.folder, runtime=runtime)
        wanted = Span("2026-05-01", "2026-05-02")
        await backfill(workspace, ("batch_export.e0",), wanted, auto_approve=True)


async def problems_of(
    seed: int, service: Service, scenario: Scenario, folder: Path
) -> tuple[int, list[str]]:
    """Run a command with changed answers. Return how many were changed, and what is wrong."""
    dice = Dice(seed)
    command = COMMANDS[seed % len(COMMANDS)]
    await service.reset()
    before = await service.state()
    user = await applier(service, scenario.written(folder))
    mutator = Mutator(service.app, dice, dice.randrange(ANSWERS[command]))
    user.line.app = mutator
    began = asyncio.get_running_loop().time()
    problems: list[str] = []
    try:
        await run(command, user, folder)
    except ReconcilerError as error:
        if "this is a bug" in f"{error} {error.hint}":
            problems.append(str(error))
    except Exception:  # noqa: BLE001 - what is looked for
        problems.append(traceback.format_exc(limit=-6))
    seconds = asyncio.get_running_loop().time() - began
    if seconds > MOST_SECONDS:
        problems.append(f"{seconds:.0f} s")
    after = await service.state()
    problems += [f"duplicate: {name}" for name in duplicates(after)]
    problems += [f"deleted: {it}" for it in unasked_deletes(scenario, before, after)]
    return mutator.count, [f"seed {seed}, {command}: {problem}" for problem in problems]


async def session(dialect: str, seed: int, answers: int, folder: Path) -> dict[str, Any]:
    """Run commands from a seed on, until so many answers were changed. Return a summary."""
    scenario = scenario_of(dialect)
    changed, problems = 0, []
    async with running_service(scenario.seed, dialect) as service:
        while changed < answers:
            count, wrong = await problems_of(seed, service, scenario, folder / str(seed))
            changed, seed = changed + count, seed + 1
            problems += wrong
    return {"changed": changed, "next_seed": seed, "problems": problems}


def main(dialect: str, seed: str, answers: str, folder: str) -> None:
    """Print a summary as JSON, with the most memory of this process in megabytes."""
    tempfile.tempdir = folder
    summary = run_virtually(session(dialect, int(seed), int(answers), Path(folder)))
    sys.stdout.write(json.dumps({**summary, "megabytes": peak_megabytes()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
