"""The recipes: their documents, their scripts, and the commands in these."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from reconciler.commands.init import filled
from reconciler.commands.program import cli
from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

FOLDER = ROOT / "recipes"
FILES = sorted(
    [*FOLDER.rglob("*.yml"), *FOLDER.rglob("*.yaml"), ROOT / "action.yml"],
    key=lambda path: path.as_posix(),
)
SCRIPTS = ("run", "script", "before_script", "after_script", "bash")
_COMMAND = re.compile(r"(?:^ *|[;&|)] *|exec )reconciler ([^;|>\n]*)", re.MULTILINE)
_LISTS = ("${words[@]}", "$push", "$@")
"""Words that are lists of arguments, which scripts build before."""


_VALUES = {
    "WORKSPACE": ".",
    "ENVIRONMENT": "production",
    "BRANCH": "main",
    "BASE_URL": "https://eu.posthog.com",
    "SOURCE": "ADDRESS-OF-RECONCILER",
    "COMMIT": "FULL-COMMIT-ID",
    "FOLDER": "*",
    **dict.fromkeys(("SUFFIX", "END", "TITLE", "BELOW"), ""),
}


def recipe(path: Path) -> str:
    """Return the text of a recipe for a workspace at the root of its repository."""
    return filled(path.read_text(encoding="utf-8"), _VALUES)


def documents(path: Path) -> list[Any]:
    """Return the documents of a YAML file, filled in."""
    return list(yaml.safe_load_all(recipe(path)))


def scripts(value: Any) -> Iterator[str]:
    """Yield the texts of all scripts in a document, also the list of a job as one."""
    if isinstance(value, list):
        for item in value:
            yield from scripts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in SCRIPTS:
                yield item if isinstance(item, str) else "\n".join(item)
            elif name == "command" and isinstance(item, list):
                yield item[2]
            else:
                yield from scripts(item)


def commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each command line in a script, without lists of arguments."""
    for line in _COMMAND.findall(script.replace("\\\n", " ")):
        words = [word for word in shlex.split(line) if word not in _LISTS]
        if words:
            yield words


def parses(words: list[str]) -> bool:
    """Return whether a command line names a command and options that exist."""
    command = cli.get_command(click.Context(cli), words[0])
    return command is not None and bool(command.make_context(words[0], words[1:]))


def cron_job(overlay: str) -> Any:
    """Return the CronJob of an overlay, as kubectl builds it. Skip the test without kubectl."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    words = ["kubectl", "kustomize", FOLDER / "kubernetes" / overlay]
    built = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)
    *maps, job = yaml.safe_load_all(built.stdout)
    assert [resource["kind"] for resource in maps] == ["ConfigMap", "ConfigMap"]
    return job
