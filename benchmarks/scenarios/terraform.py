"""Terraform with its provider: plans of 500 projects without changes, and a user for `faults`.

The provider is built from github.com/PostHog/terraform-provider-posthog with `go build`. Without a
path to it, only the program is measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import Settings, Task, alternating, connected, cpu, peak, plan_words, wall
from benchmarks.processes import run
from benchmarks.results import Result, ratio_of
from benchmarks.service import Service, running
from benchmarks.workspaces import API_KEY, ORGANIZATION, Workload, environ, write
from tests.reliability import service as tests
from tests.reliability.runs import Ran
from tests.reliability.scenarios import Scenario
from tests.reliability.service import Line

LATENCY = 0.02
_KIND = "posthog_project"
_FIELDS = ("name", "timezone")
_SOURCE = "registry.terraform.io/posthog/posthog"
_PARALLELISM = 10
"""The default of Terraform. The program uses its own default, 8."""


def projects_500(settings: Settings) -> Result:
    """Plan 500 projects that do not differ. Terraform creates them, so that it has their state."""
    count = 50 if settings.quick else 500
    provider = settings.terraform_provider if shutil.which("terraform") else None
    result = Result(f"plan without changes: {count} projects, {LATENCY * 1000:.0f} ms a call")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = write(Workload(0, count, projects_live=provider is None), folder)
        with running(place.seed) as service:
            tasks = {"reconciler": connected(service, *plan_words(place))}
            if provider is not None:
                tasks["terraform"] = _terraform(provider, service, count, folder)
            service.delay(LATENCY)
            for tool, task in tasks.items():
                service.clear_requests()
                run(task.command, environ=task.environ, checkout=settings.checkout)
                result.calls[tool] = len(service.requests)
            usages = alternating(tasks, settings)
    for tool, rounds in usages.items():
        result.values[f"{tool}, CPU s"] = min(cpu(rounds))
        result.values[f"{tool}, wall s"] = min(wall(rounds))
        result.values[f"{tool}, peak MB"] = peak(rounds)
    if provider is None:
        result.lines.append("Terraform was not measured: there is no provider.")
        return result
    theirs, ours = usages["terraform"], usages["reconciler"]
    result.ratios = {
        "Terraform ÷ reconciler, CPU": ratio_of(cpu(theirs), cpu(ours), aim=8, at_least=True),
        "Terraform ÷ reconciler, wall": ratio_of(wall(theirs), wall(ours), aim=10, at_least=True),
    }
    return result


def _terraform(provider: Path, service: Service, count: int, folder: Path) -> Task:
    """Create the projects with Terraform, and return the task of a plan of them."""
    files = folder / "terraform"
    projects = {f"web-{number:04}": {"name": f"Web {number}"} for number in range(count)}
    _write(files, provider, projects)
    variables = _variables(files, service.base_url, API_KEY, ORGANIZATION)
    run(_command(files, "apply", "-auto-approve"), environ=variables)
    # A plan with changes exits with 2, which is an error here.
    return Task(_command(files, "plan", "-detailed-exitcode"), variables)


def _write(
    folder: Path,
    provider: Path,
    projects: Mapping[str, Mapping[str, str]],
    imports: Sequence[Mapping[str, str]] = (),
) -> None:
    """Write files that declare projects."""
    folder.mkdir(exist_ok=True)
    override = f'dev_overrides {{ "{_SOURCE}" = "{provider.resolve().parent}" }}'
    (folder / "terraform.rc").write_text(f"provider_installation {{\n  {override}\n}}\n")
    required = {"required_providers": {"posthog": {"source": _SOURCE}}}
    content: dict[str, object] = {"terraform": required, "import": imports}
    if projects:
        content["resource"] = {_KIND: projects}
    (folder / "main.tf.json").write_text(json.dumps(content, indent=1), encoding="utf-8")


def _variables(folder: Path, base_url: str, key: str, organization: str) -> dict[str, str]:
    return environ(
        TF_CLI_CONFIG_FILE=str(folder / "terraform.rc"),
        CHECKPOINT_DISABLE="1",
        POSTHOG_HOST=base_url,
        POSTHOG_API_KEY=key,
        POSTHOG_ORGANIZATION_ID=organization,
    )


def _command(folder: Path, command: str, *arguments: str) -> list[str]:
    options = ["-input=false", "-no-color", f"-parallelism={_PARALLELISM}"]
    return ["terraform", f"-chdir={folder}", command, *options, *arguments]


@dataclass(slots=True)
class TerraformUser:
    """A user of Terraform, in a folder with its files. Its processes run in real time."""

    line: Line
    folder: Path
    key: str = tests.KEY
    saved: tuple[str, ...] = ()
    group: int = 0

    async def planned(self) -> Ran:
        """Plan."""
        return await self._ran("plan")

    async def save(self) -> None:
        """Save a plan, which the next run applies."""
        await self._ran("plan", "-out=saved")
        self.saved = ("saved",)

    async def run(self) -> Ran | None:
        """Apply. Return None if the run was killed."""
        ran = await self._ran("apply", "-auto-approve", *self.saved)
        return None if self.line.dead else ran

    def stop_at(self, call: int, *, kill: bool) -> None:
        """Kill or interrupt Terraform and its provider when a call took effect."""
        self.line.signal_at, self.line.cut = (call, "within"), kill
        number = signal.SIGKILL if kill else signal.SIGINT
        self.line.signal = lambda: os.killpg(self.group, number)

    async def _ran(self, command: str, *arguments: str) -> Ran:
        process = await asyncio.create_subprocess_exec(
            *_command(self.folder, command, *arguments),
            env=_variables(self.folder, self.line.base_url, self.key, tests.ORGANIZATION),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.group = process.pid
        output, _ = await process.communicate()
        return Ran(process.returncode or 0, 0, error=output.decode())


def supports(scenario: Scenario) -> bool:
    """Return whether Terraform has all that a scenario declares."""
    projects = scenario.head["projects"].values()
    return not scenario.head.get("batch_exports") and all(
        own.keys() <= {*_FIELDS, "state"} for own in projects
    )


async def adopt(user: TerraformUser, provider: Path, scenario: Scenario) -> None:
    """Import the live projects of a scenario, and write its configuration for Terraform."""
    live = {own["name"].lower(): own for own in scenario.projects}
    resources = {key: {name: own[name] for name in _FIELDS} for key, own in live.items()}
    imports = [
        {"to": f"{_KIND}.{key}", "id": f"{tests.ORGANIZATION}/{own['id']}"}
        for key, own in live.items()
    ]
    _write(user.folder, provider, resources, imports)
    ran = await user.run()
    assert ran is not None
    assert ran.code == 0, ran.error
    declared = {
        key: own for key, own in scenario.head["projects"].items() if own.get("state") != "absent"
    }
    _write(user.folder, provider, declared)
