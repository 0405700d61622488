"""`reconciler demo`: an end-to-end run on an example, on the embedded service.

Each step runs the real command line as a process and shows its output.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from msgspec.structs import replace

from reconciler.commands.command import command
from reconciler.commands.options import runtime
from reconciler.commands.process import write_result
from reconciler.commands.screen import style_of
from reconciler.commands.session import connected, open_session
from reconciler.commands.workspace import Workspace
from reconciler.errors import ReconcilerError
from reconciler.git.ci import JOB_VARIABLES
from reconciler.kinds import all_kinds
from reconciler.model.live import Routes
from reconciler.model.text import printable
from reconciler.packaged import packaged
from reconciler.render.progress import demo_line
from reconciler.service.live import read_live

_EXAMPLE = "acme"
_MOST_LINES = 30
_SECRET = re.compile(r"\$\{secret:env:(\w+)\}")


@contextmanager
def embedded_service(*options: str) -> Iterator[Mapping[str, Any]]:
    """Start the embedded service on a free port, and stop it at the end.

    Yields its base_url, organization, project_id and api_key. Raises ReconcilerError.
    """
    # Reports packages that are not installed.
    import_module("reconciler.commands.emulator")
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "reconciler", "emulator", "--until-stdin-ends", *options],
            # It ends with this process, also if that is killed.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            line = process.stdout.readline() if process.stdout is not None else b""
            if not line:
                process.wait()
                errors.seek(0)
                error = " ".join(errors.read().decode(errors="replace").split())
                raise ReconcilerError(f"the embedded service did not start: {printable(error)}")
            yield orjson.loads(line)
        finally:
            # It keeps nothing, and a signal leaves little time for a graceful end.
            process.kill()
            process.communicate()


@command(
    "demo",
    examples=(
        ("demo", "Plan, apply, cause drift and repair it, on the embedded service"),
        ("demo --no-color > demo.txt", "Write the same to a file"),
    ),
    page="README.md",
)
def demo_command() -> None:
    """Run an end-to-end demo on an example: plan, apply, an empty plan, drift, repair.

    Starts the embedded service on a free loopback port and needs no network and no account.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reconciler-demo-")))
        workspace = folder / _EXAMPLE
        shutil.copytree(packaged("examples") / _EXAMPLE, workspace)
        service = stack.enter_context(embedded_service())
        environ = {
            # Variables of a CI job or of this tool would change the output.
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("RECONCILER_") and name not in JOB_VARIABLES
            },
            "ACME_STAGING_URL": str(service["base_url"]),
            "ACME_STAGING_ORGANIZATION": str(service["organization"]),
            "ACME_STAGING_API_KEY": str(service["api_key"]),
            **{
                name: f"demo-{name.lower()}"
                for file in workspace.rglob("*.yaml")
                for name in _SECRET.findall(file.read_text(encoding="utf-8"))
            },
        }
        _run_steps(workspace, environ)


def _run_steps(workspace: Path, environ: Mapping[str, str]) -> None:
    run = partial(_run, workspace, environ)
    files = len(list(workspace.rglob("*.yaml")))
    _say(
        f"{files} YAML files describe the data pipelines of an organization: three projects and "
        "twelve batch exports.\nThe embedded service replaces the real one, on loopback. First "
        "check the files; this needs no network and no secret."
    )
    run("validate -e staging")
    _say("Make a plan. It changes nothing, and shows secrets as references only.")
    run("plan --detailed-exitcode", expected=2)
    _say("Apply it: projects before their exports, several changes at a time.")
    run("apply --auto-approve")
    _say("Plan again. The plan is empty, since live state matches the configuration.")
    run("plan --detailed-exitcode")
    _say(
        "Meanwhile, a user pauses one export and changes the prefix of another in the browser.\n"
        "The plan shows this drift, and the consequences of correcting it."
    )
    asyncio.run(_drift(workspace, environ))
    run("plan --detailed-exitcode", expected=2)
    _say("Correct it: one call unpauses, one PATCH sends one field. Secrets are not sent.")
    run("apply --auto-approve")
    _say("Live state matches the configuration again.")
    run("plan --detailed-exitcode")
    _say("This is the end of the demo. To start with your own project, see README.md.")


def _say(text: str) -> None:
    write_result(f"{demo_line(text, style_of(sys.stdout))}\n")


def _run(workspace: Path, environ: Mapping[str, str], arguments: str, *, expected: int = 0) -> None:
    """Run a command and show its output. Raises ReconcilerError for another exit code."""
    _say(f"$ reconciler {arguments} -C examples/{_EXAMPLE}")
    command = [sys.executable, "-m", "reconciler", *arguments.split()]
    ended = subprocess.run(  # noqa: S603 - this program itself
        # In a CI job the files of the demo would not decide.
        [*command, "-C", str(workspace), "--trust-workspace"],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    lines = ended.stdout.rstrip().splitlines()
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        gap = f"    … {len(lines) - 2 * half} more lines …"
        lines = [*lines[:half], gap, *lines[-half:]]
    _say("\n".join(f"  {line}" for line in lines))
    if ended.returncode != expected:
        raise ReconcilerError(
            f"the demo stopped: exit code {ended.returncode}, expected {expected}"
        )


async def _drift(workspace: Path, environ: Mapping[str, str]) -> None:
    """Pause an export and change the prefix of another."""
    process = replace(runtime(), environ=environ)
    session = open_session(Workspace(workspace, trust_workspace=True, runtime=process))
    organization = session.loaded.desired.organization
    async with connected(session) as transport:
        live = await read_live(transport, session.loaded.desired, kinds=all_kinds())
        exports = {
            export.name: (export.id, Routes(kind, organization, export.parent_id))
            for kind in all_kinds()
            for export in live.of(kind.name)
        }
        paused, routes = exports["Web events to Snowflake"]
        await transport.send(routes.action(paused, "pause"))
        moved, routes = exports["Web events to S3"]
        body: dict[str, Any] = {"destination": {"type": "S3", "config": {"prefix": "oops/"}}}
        await transport.send(routes.patch(moved, body))
