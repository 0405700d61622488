"""The use case `demo`: an end-to-end run on an example, on the embedded service.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.runtime import Runtime, Workspace
from reconciler.commands.session import Session
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.request import Routes
from reconciler.model.text import printable
from reconciler.packaged import packaged
from reconciler.workspace.git.ci import JOB_VARIABLES

_EXAMPLE = "acme"
_MOST_LINES = 30
_SECRET = re.compile(r"\$\{secret:env:(\w+)\}")


@contextmanager
def embedded_service(*options: str) -> Iterator[Mapping[str, Any]]:
    """Start the embedded service on a free port, and stop it at the end.

    Yields its base_url, organization, project_id and api_key. Raises ReconcilerError.
    """
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
                error = printable(errors.read().decode(errors="replace").strip())
                raise ReconcilerError(
                    f"the embedded service did not start: {error}",
                    hint="install it with: pip install 'posthog-reconciler[emulator]'",
                )
            yield orjson.loads(line)
        finally:
            # It keeps nothing, and a signal leaves little time for a graceful end.
            process.kill()
            process.communicate()


class _Demo(Struct, frozen=True):
    """The copy of the example, the environment variables of its commands, and the output."""

    workspace: Path
    runtime: Runtime
    say: Callable[[str], None]


def demo(runtime: Runtime, say: Callable[[str], None]) -> None:
    """Run the demo in a temporary folder, which is removed at the end.

    Raises ReconcilerError if a step has an unexpected exit code.
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
        _run_steps(_Demo(workspace, replace(runtime, environ=environ), say))


def _run_steps(demo: _Demo) -> None:
    files = len(list(demo.workspace.rglob("*.yaml")))
    demo.say(
        f"{files} YAML files describe the data pipelines of an organization: three projects and "
        "twelve batch exports.\nThe embedded service replaces the real one, on loopback. First "
        "check the files; this needs no network and no secret."
    )
    _run(demo, "validate", "-e", "staging")
    demo.say("Make a plan. It changes nothing, and shows secrets as references only.")
    _run(demo, "plan", "--detailed-exitcode", expected=2)
    demo.say("Apply it: projects before their exports, several changes at a time.")
    _run(demo, "apply", "--auto-approve")
    demo.say("Plan again. The plan is empty, since live state matches the configuration.")
    _run(demo, "plan", "--detailed-exitcode")
    demo.say(
        "Meanwhile, a user pauses one export and changes the prefix of another in the browser.\n"
        "The plan shows this drift, and the consequences of correcting it."
    )
    asyncio.run(_drift(demo))
    _run(demo, "plan", "--detailed-exitcode", expected=2)
    demo.say("Correct it: one call unpauses, one PATCH sends one field. Secrets are not sent.")
    _run(demo, "apply", "--auto-approve")
    demo.say("Live state matches the configuration again.")
    _run(demo, "plan", "--detailed-exitcode")
    demo.say("This is the end of the demo. To start with your own project, see README.md.")


def _run(demo: _Demo, *arguments: str, expected: int = 0) -> None:
    demo.say(f"$ reconciler {' '.join(arguments)} -C examples/{_EXAMPLE}")
    command = [sys.executable, "-m", "reconciler"]
    ended = subprocess.run(  # noqa: S603 - this program itself
        # In a CI job the files of the demo would not decide.
        [*command, *arguments, "-C", str(demo.workspace), "--trust-workspace"],
        env=dict(demo.runtime.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    lines = ended.stdout.rstrip().splitlines()
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        gap = f"    … {len(lines) - 2 * half} more lines …"
        lines = [*lines[:half], gap, *lines[-half:]]
    demo.say("\n".join(f"  {line}" for line in lines))
    if ended.returncode != expected:
        raise ReconcilerError(
            f"the demo stopped: exit code {ended.returncode}, expected {expected}"
        )


async def _drift(demo: _Demo) -> None:
    """Pause an export and change the prefix of another."""
    session = Session.open(Workspace(demo.workspace, trust_workspace=True, runtime=demo.runtime))
    organization = session.loaded.desired.organization
    async with session.connected() as transport:
        live = await session.read(transport)
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
