"""Plans of 500 projects without changes, with latency, beside Terraform with its provider.

The provider is built from github.com/PostHog/terraform-provider-posthog with `go build`. Without a
path to it, only the program is measured.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import Settings, Task, alternating, connected, cpu, peak, plan_words, wall
from benchmarks.processes import run
from benchmarks.results import Result, ratio_of
from benchmarks.service import Service, running
from benchmarks.workspaces import API_KEY, ORGANIZATION, Workload, environ, write

LATENCY = 0.02
_ROUNDS = 3
_SOURCE = "registry.terraform.io/posthog/posthog"
_PARALLELISM = 10
"""The default of Terraform. The program uses its own default, 8."""


def projects_500(settings: Settings) -> Result:
    """Plan 500 projects that do not differ. Terraform creates them, so that it has their state."""
    count = 50 if settings.quick else 500
    provider = settings.terraform_provider if shutil.which("terraform") else None
    settings = replace(settings, rounds=min(settings.rounds, _ROUNDS))
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
    files.mkdir()
    override = f'dev_overrides {{ "{_SOURCE}" = "{provider.resolve().parent}" }}'
    (folder / "terraform.rc").write_text(f"provider_installation {{\n  {override}\n}}\n")
    content = {
        "terraform": {"required_providers": {"posthog": {"source": _SOURCE}}},
        "resource": {
            "posthog_project": {
                f"web-{number:04}": {"name": f"Web {number}"} for number in range(count)
            }
        },
    }
    (files / "main.tf.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    variables = environ(
        TF_CLI_CONFIG_FILE=str(folder / "terraform.rc"),
        CHECKPOINT_DISABLE="1",
        POSTHOG_HOST=service.base_url,
        POSTHOG_API_KEY=API_KEY,
        POSTHOG_ORGANIZATION_ID=ORGANIZATION,
    )
    terraform = ["terraform", f"-chdir={files}"]
    options = ["-input=false", "-no-color", f"-parallelism={_PARALLELISM}"]
    run([*terraform, "apply", "-auto-approve", *options], environ=variables)
    # A plan with changes exits with 2, which is an error here.
    return Task([*terraform, "plan", "-detailed-exitcode", *options], variables)
