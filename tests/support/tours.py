"""Run the blocks of a page in order: write its files, make its edits, run its commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli import reconciler
from tests.support.git import ISOLATED
from tests.support.limits import TIMEOUT

_BLOCK = re.compile(r"^```(yaml|diff|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Tour:
    """A page that is followed in a folder, with the variables of a shell.

    A block of YAML whose first line is `# FILE` is a file. A difference begins with `+++ FILE`, and
    its parts are separated by lines with @@. `address` is what the page calls the service.
    `code` is the exit code of the last command of reconciler, which `echo $?` prints, and
    `plan_id` is the id of the last plan that was printed as JSON.
    """

    folder: Path
    environ: dict[str, str]
    address: str
    code: int = 0
    plan_id: str = ""

    def follow(self, page: str) -> None:
        """Run every block of a text. Raise AssertionError if a command prints other lines."""
        for language, block in _BLOCK.findall(page):
            if language == "yaml":
                self._write(block)
            elif language == "diff":
                header, _, difference = block.partition("\n")
                edit(self.folder / header.removeprefix("+++ "), difference)
            else:
                for command, printed in commands_of(block):
                    self._run(command, printed)

    def _write(self, block: str) -> None:
        name = block.split("\n", 1)[0].removeprefix("# ").split(" ")[0]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block, encoding="utf-8")

    def _run(self, command: str, printed: str) -> None:
        words = shlex.split(command)
        match words[0]:
            case "export":
                self.environ.update(word.split("=", 1) for word in words[1:])
            case "cd":
                self.folder /= words[1]
                os.chdir(self.folder)
            case "reconciler":
                check_printed(command, printed, self._reconciler(words[1:]))
            case "echo":
                assert (words[1:], printed) == (["$?"], f"{self.code}\n"), command
            case program:
                assert program in ("cat", "git", "sed"), command
                check_printed(command, printed, self._process(words))

    def _reconciler(self, words: list[str]) -> str:
        # Approval needs a terminal that answers.
        asks = words[0] in ("apply", "unpause", "backfill")
        approval = ["--auto-approve"] if asks else []
        variables = {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "xterm", **self.environ}
        if "--plan-id" in words:
            approval = []
            words[words.index("--plan-id") + 1] = self.plan_id
        ran = reconciler(*words, *approval, environ=variables, terminal=True)
        self.code = ran.code
        if '"plan_id": "' in ran.out:
            self.plan_id = ran.out.partition('"plan_id": "')[2].partition('"')[0]
        # Progress overwrites the last line.
        text = re.sub(r"\r?.*\r\x1b\[K", "", ran.out + ran.err)
        return text.replace(self.environ["RECONCILER_BASE_URL"], self.address)

    def _process(self, words: list[str]) -> str:
        ended = subprocess.run(
            words,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **ISOLATED},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert ended.returncode == 0, f"{shlex.join(words)}\n{ended.stdout}{ended.stderr}"
        return ended.stdout + ended.stderr


def edit(file: Path, difference: str) -> None:
    """Apply a difference whose parts are separated by lines with @@."""
    for part in difference.split("@@\n"):
        lines = part.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, before
        file.write_text(text.replace(before, after), encoding="utf-8")


def commands_of(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command after a prompt, with the text that it prints."""
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, printed = command.partition("\n")
        yield line, printed


def check_printed(command: str, printed: str, actual: str) -> None:
    """Raise AssertionError if a line of a page is not in what the command printed."""
    expected = re.sub(r"(Apply this plan|Start \d+ backfills?)\?.*", "", printed).splitlines()
    missing = [line for line in expected if not re.search(_pattern(line), actual, re.MULTILINE)]
    assert not missing, f"{command}\nmissing: {missing}\n{actual}"


def _pattern(line: str) -> str:
    """Return the pattern of a printed line, in which a word that ends with … can be anything."""
    fixed = [re.escape(part) for part in re.split(r"[\w-]*…", line)]
    return f"^{'.*'.join(fixed)}$"
