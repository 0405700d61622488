"""`plan -e '*'` and `compare` of 10 environments of 500 exports.

All environments use one embedded service.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import Settings, Task, alternating, cpu, wall
from benchmarks.processes import reconciler, run
from benchmarks.results import Result, ratio_of
from benchmarks.service import running
from benchmarks.workspaces import environ

ENVIRONMENTS = 10
EXPORTS = 500
DIFFERENT_EVERY = 50
CONFIG = {"bucket_name": "acme", "region": "eu-central-1", "prefix": "p/"}
SECRETS = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "secret"}


def export_of(number: int, config: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an export."""
    destination = {"type": "S3", "config": config}
    return {"name": f"Export {number}", "interval": "hour", "destination": destination}


def seed() -> dict[str, Any]:
    """Return a seed with all exports in one project."""
    exports = [export_of(number, {**CONFIG, **SECRETS}) for number in range(EXPORTS)]
    projects = [{"name": "Web", "batch_exports": exports}]
    return {
        "organizations": [{"id": "org", "name": "Acme", "projects": projects}],
        "keys": [{"value": "phx_benchmark"}],
    }


def workspace() -> dict[str, dict[str, Any]]:
    """Return the files: a bucket by environment, and some exports with an override."""
    secrets = dict.fromkeys(SECRETS, "${secret:env:BUCKET_KEY}")
    exports = {}
    for number in range(EXPORTS):
        body = export_of(number, {**CONFIG, "bucket_name": "${var:bucket}", **secrets})
        exports[f"export-{number}"] = {"project": "web", **body}
        if number % DIFFERENT_EVERY == 0:
            environment = f"env-{number // DIFFERENT_EVERY % ENVIRONMENTS}"
            exports[f"export-{number}"]["overrides"] = {environment: {"interval": "day"}}
    environments = {
        f"env-{number}": {"vars": {"bucket": f"acme-{number}"}} for number in range(ENVIRONMENTS)
    }
    return {
        "reconciler.yaml": {
            "version": 1,
            "secrets": ["BUCKET_KEY"],
            "environments": environments,
            "vars": {"bucket": "acme"},
        },
        "exports.yaml": {"projects": {"web": {"name": "Web"}}, "batch_exports": exports},
    }


def environments(settings: Settings) -> Result:
    """Plan one environment and all of them, and compare two."""
    result = Result(f"{ENVIRONMENTS} environments of {EXPORTS} exports that all change")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in workspace().items():
            # JSON is YAML.
            (folder / file).write_text(json.dumps(content, indent=1), encoding="utf-8")
        (folder / "seed.json").write_text(json.dumps(seed()), encoding="utf-8")
        with running(folder / "seed.json") as service:
            plan = ("plan", "-C", name, "--summary", "--trust-workspace", "-e")
            compare = ("compare", "-C", name, "--trust-workspace", "env-0", "env-1")
            lines = {
                "plan of one": (*plan, "env-0"),
                "plan of all": (*plan, "*"),
                "compare": compare,
            }
            tasks = {}
            for what, words in lines.items():
                variables = environ(**service.environ, BUCKET_KEY="secret-key-1234")
                task = tasks[what] = Task(reconciler(*words), variables, codes=(0, 2))
                service.clear_requests()
                run(task.command, environ=variables, checkout=settings.checkout, codes=task.codes)
                result.calls[what] = len(service.requests)
            usages = alternating(tasks, settings)
    result.ratios = {
        f"all ÷ one, {what}": ratio_of(
            measure(usages["plan of all"]), measure(usages["plan of one"])
        )
        for what, measure in (("CPU", cpu), ("wall", wall))
    }
    result.values = {f"{what}, CPU s": min(cpu(rounds)) for what, rounds in usages.items()}
    return result
