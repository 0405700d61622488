"""Commands as processes of their own, forked from one that has imported everything."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.reliability.scenarios import ENVIRON
from tests.reliability.service import KEY, ORGANIZATION, Line
from tests.support import served
from tests.support.emulator import PROCESSES
from tests.support.limits import TIMEOUT

_NUMBERS = itertools.count()


class Command:
    """A command that runs once it is started. `folder` is for what it prints and its locks."""

    def __init__(
        self,
        folder: Path,
        *words: str | Path,
        environ: Mapping[str, str],
        terminal: str | None = None,
        killed_at: tuple[Path, int] | None = None,
    ) -> None:
        self.out = folder / f"out-{next(_NUMBERS)}.txt"
        own = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "HOME": str(folder), **environ}
        arguments = ([*map(str, words)], own, self.out, terminal, killed_at)
        self._process = PROCESSES.Process(target=served.run, args=arguments, daemon=True)
        self.start = self._process.start

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid or 0, number)

    async def ended(self) -> int:
        """Return the exit code, the negative number of a signal. Fail beyond the limit."""
        deadline = asyncio.get_running_loop().time() + TIMEOUT
        while (code := self._process.exitcode) is None:
            if asyncio.get_running_loop().time() > deadline:
                self._process.kill()
                pytest.fail(f"no end within {TIMEOUT} seconds:\n{self.printed()}")
            await asyncio.sleep(0.01)
        assert "Traceback" not in self.printed(), self.printed()
        assert "this is a bug" not in self.printed(), self.printed()
        return code

    def printed(self) -> str:
        return self.out.read_text(encoding="utf-8") if self.out.exists() else ""

    async def run(self) -> int:
        """Let it begin, and return the exit code."""
        self.start()
        return await self.ended()


def environ_of(line: Line) -> dict[str, str]:
    """Return the variables of a command that uses a line to the service."""
    return {
        "RECONCILER_BASE_URL": line.base_url,
        "RECONCILER_ORGANIZATION": ORGANIZATION,
        "RECONCILER_API_KEY": KEY,
        **ENVIRON,
    }
