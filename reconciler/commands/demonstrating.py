"""The use case `demo`: the whole way on an example, against the embedded service.

Every step runs the real command line as a process and shows what it prints, so that what a
newcomer sees here is what they will see on their own files.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import orjson

from reconciler.commands.planning import connected, load_workspace, read_for, resolver_for
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import ReconcilerError
from reconciler.model.request import Repeat, Request

_EXAMPLE = "acme"
_LONGEST = 30
_START_SECONDS = 20.0
_SECRETS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ARCHIVE_KEY_ID", "ARCHIVE_SECRET"),
    *("SNOWFLAKE_USER", "SNOWFLAKE_PASSWORD", "SNOWFLAKE_KEY", "SNOWFLAKE_PASSPHRASE"),
    *("BIGQUERY_PRIVATE_KEY", "BIGQUERY_PRIVATE_KEY_ID", "BIGQUERY_TOKEN_URI"),
    *("BIGQUERY_CLIENT_EMAIL", "REDSHIFT_USER", "REDSHIFT_PASSWORD"),
    *("POSTGRES_USER", "POSTGRES_PASSWORD", "MIRROR_TOKEN"),
)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where the demo plays."""

    workspace: Path
    environ: Mapping[str, str]
    say: Callable[[str], None]
    runtime: Runtime


def demo(runtime: Runtime, say: Callable[[str], None]) -> None:
    """Play it, and leave nothing behind.

    Raises ReconcilerError if a step does not go as it should.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reconciler-demo-")))
        example = stack.enter_context(_example())
        workspace = folder / _EXAMPLE
        shutil.copytree(example, workspace)
        service = stack.enter_context(_embedded_service())
        environ = {
            **{name: value for name, value in os.environ.items() if not _steers(name)},
            "ACME_STAGING_URL": str(service["base_url"]),
            "ACME_STAGING_ORGANIZATION": str(service["organization"]),
            "ACME_STAGING_API_KEY": str(service["api_key"]),
            **{f"ACME_{name}": f"demo-{name.lower()}" for name in _SECRETS},
        }
        world = Runtime(environ=environ, now=runtime.now)
        _play(_Stage(workspace, environ, say, world))


def _steers(name: str) -> bool:
    """Variables of a CI job, or of this tool, would change what the demo shows."""
    return name.startswith("RECONCILER_") or name in ("CI", "TF_BUILD")


def _play(stage: _Stage) -> None:
    stage.say(
        f"An organization's data pipelines are described in {len(list(_yaml(stage)))} YAML files: "
        "three projects and twelve batch exports.\nAn embedded service plays the real one, on "
        "loopback. First, the files are checked; this needs no network and no secret."
    )
    _run(stage, "validate", "-e", "staging")
    stage.say("What would it do? A plan changes nothing. Secrets show up as references only.")
    _run(stage, "plan", "--detailed-exitcode", expected=2)
    stage.say("Carry it out: projects before what is in them, several at a time.")
    _run(stage, "apply", "--auto-approve")
    stage.say("And again: the second plan is empty. Nothing is ever made twice.")
    _run(stage, "plan", "--detailed-exitcode")
    stage.say(
        "Meanwhile somebody pauses an export by hand and changes the prefix of another.\n"
        "The plan tells both, and what follows from putting them right."
    )
    asyncio.run(_meddle(stage))
    _run(stage, "plan", "--detailed-exitcode", expected=2)
    stage.say("Repair it: one call unpauses, one PATCH carries the one field. Secrets stay.")
    _run(stage, "apply", "--auto-approve")
    stage.say("In step again.")
    _run(stage, "plan", "--detailed-exitcode")
    stage.say("That was all of it. Begin with your own: README.md has a tour of five minutes.")


def _yaml(stage: _Stage) -> Iterator[Path]:
    return stage.workspace.rglob("*.yaml")


def _run(stage: _Stage, *arguments: str, expected: int = 0) -> None:
    stage.say(f"$ reconciler {' '.join(arguments)} -C examples/{_EXAMPLE}")
    ended = subprocess.run(  # noqa: S603 - this program itself
        [sys.executable, "-m", "reconciler", *arguments, "-C", str(stage.workspace)],
        env=dict(stage.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    lines = ended.stdout.rstrip().splitlines()
    if len(lines) > _LONGEST:
        half = _LONGEST // 2
        gap = f"    … {len(lines) - 2 * half} more lines …"
        lines = [*lines[:half], gap, *lines[-half:]]
    stage.say("\n".join(f"  {line}" for line in lines))
    if ended.returncode != expected:
        raise ReconcilerError(
            f"the demo stopped: exit code {ended.returncode} where {expected} was expected"
        )


async def _meddle(stage: _Stage) -> None:
    """What a colleague with a browser does."""
    options = WorkspaceOptions(stage.workspace)
    loaded = load_workspace(options, stage.environ)
    async with connected(loaded, resolver_for(loaded, stage.environ), stage.runtime) as service:
        live = await read_for(service, loaded)
        ids = {each.name: each for found in live.objects.values() for each in found}
        paused, moved = ids["Web events to Snowflake"], ids["Web events to S3"]
        place = "/api/projects/{}/batch_exports/{}/"
        await service.send(
            Request(
                "POST", place.format(paused.parent_id, paused.id) + "pause/", Repeat.SAFE, body={}
            )
        )
        change: dict[str, Any] = {"destination": {"type": "S3", "config": {"prefix": "oops/"}}}
        await service.send(
            Request("PATCH", place.format(moved.parent_id, moved.id), Repeat.SAFE, body=change)
        )


@contextmanager
def _example() -> Iterator[Path]:
    """The example workspace: from the package, or from the repository beside it."""
    packaged = files("reconciler").joinpath("examples", _EXAMPLE)
    if packaged.is_dir():
        with as_file(packaged) as found:
            yield found
        return
    yield Path(__file__).resolve().parents[2] / "examples" / _EXAMPLE


@contextmanager
def _embedded_service() -> Iterator[Mapping[str, Any]]:
    """A service of our own on a free port, ended at the end, as long as it takes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", "emulator"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        line = process.stdout.readline() if process.stdout is not None else b""
        if not line:
            _, told = process.communicate(timeout=_START_SECONDS)
            raise ReconcilerError(
                f"the embedded service did not start: {told.decode(errors='replace').strip()}",
                hint="install it with: pip install 'reconciler[emulator]'",
            )
        yield orjson.loads(line)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
