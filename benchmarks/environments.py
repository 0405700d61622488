"""Measure `plan -e '*'` and `compare` for 10 environments of 500 exports.

Run: python benchmarks/environments.py. All environments lead to one embedded service. Prints calls
and seconds, and for `plan` the ratio to one environment in the same run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from emulator import service

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


def measured(name: str, *words: str, environ: dict[str, str]) -> float:
    """Run a command, print its calls and its time, and return the seconds."""
    begun = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "reconciler", *words, "--trust-workspace"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    assert ended.returncode in (0, 2), ended.stderr
    calls = re.search(r"(\d+) API calls", ended.stderr)
    print(f"{name:32} {calls[1] if calls else 0:>5} calls {seconds:6.2f} s")
    return seconds


def main() -> None:
    """Print the measurements."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in workspace().items():
            # JSON is YAML.
            (folder / file).write_text(json.dumps(content, indent=1), encoding="utf-8")
        (folder / "seed.json").write_text(json.dumps(seed()), encoding="utf-8")
        with service(folder / "seed.json") as (_, where, _):
            environ = {
                "RECONCILER_BASE_URL": where["base_url"],
                "RECONCILER_ORGANIZATION": where["organization"],
                "RECONCILER_API_KEY": where["api_key"],
                "BUCKET_KEY": "secret-key-1234",
            }
            plan = ("plan", "-C", name, "--summary", "-e")
            one = measured("plan, one environment", *plan, "env-0", environ=environ)
            every = measured("plan, every environment", *plan, "*", environ=environ)
            print(f"{'ratio':32} {every / one:18.1f}")
            compare = ("compare", "-C", name, "env-0", "env-1")
            measured("compare, files", *compare, environ=environ)
            measured("compare --live", *compare, "--live", environ=environ)


if __name__ == "__main__":
    main()
