"""Commands as processes of their own, forked from one that has imported everything."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.reliability.scenarios import ENVIRON
from tests.reliability.service import KEY, ORGANIZATION, Line
from tests.support.limits import TIMEOUT


@dataclass(slots=True)
class Template:
    """The process that forks, and the folder for what commands print."""

    process: asyncio.subprocess.Process
    folder: Path
    started: int = 0
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, **request: Any) -> dict[str, int]:
        """Send a request and return its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        async with self.one_at_a_time:
            stdin.write(json.dumps(request).encode() + b"\n")
            answer: dict[str, int] = json.loads(await stdout.readline())
            return answer

    async def start(self, line: Line, *words: str | Path, terminal: str | None = None) -> Command:
        """Start a command that waits for `go`."""
        self.started += 1
        out = self.folder / f"out-{self.started}.txt"
        environ = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder),
            "HOME": str(self.folder),
            "RECONCILER_BASE_URL": line.base_url,
            "RECONCILER_ORGANIZATION": ORGANIZATION,
            "RECONCILER_API_KEY": KEY,
            **ENVIRON,
        }
        command = {
            "words": [str(word) for word in words],
            "environ": environ,
            "out": str(out),
            "terminal": terminal,
        }
        return Command(self, (await self.ask(start=command))["pid"], out)


@dataclass(slots=True)
class Command:
    """A running command."""

    template: Template
    pid: int
    out: Path

    async def go(self) -> None:
        await self.template.ask(go=self.pid)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def ended(self) -> int:
        """Return the exit code, the negative number of a signal. Fail beyond the limit."""
        deadline = asyncio.get_running_loop().time() + TIMEOUT
        while "code" not in (answer := await self.template.ask(poll=self.pid)):
            if asyncio.get_running_loop().time() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                pytest.fail(f"no end within {TIMEOUT} seconds:\n{self.printed()}")
            await asyncio.sleep(0.01)
        code = answer["code"]
        assert "Traceback" not in self.printed(), self.printed()
        assert "this is a bug" not in self.printed(), self.printed()
        return code

    def printed(self) -> str:
        return self.out.read_text(encoding="utf-8") if self.out.exists() else ""

    async def run(self) -> int:
        """Let it begin, and return the exit code."""
        await self.go()
        return await self.ended()


@asynccontextmanager
async def template(folder: Path) -> AsyncIterator[Template]:
    """Yield a new template process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.reliability.template",
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Template(process, folder)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()
