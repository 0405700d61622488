"""Workspaces of any size, and the live state that matches them or differs from them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import yaml

ENVIRONMENT = "production"
ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"


def _random_looking(name: str, length: int) -> str:
    """Return a text like a generated secret, the same in every run."""
    return sha256(name.encode()).hexdigest()[:length]


API_KEY = f"phx_{_random_looking('key', 43)}"
SECRETS = {
    "AWS_ACCESS_KEY_ID": f"AKIA{_random_looking('id', 16).upper()}",
    "AWS_SECRET_ACCESS_KEY": _random_looking("secret", 40),
    "PG_PASSWORD": _random_looking("postgres", 24),
    "PG_USER": "exporter",
    "SNOWFLAKE_PASSWORD": _random_looking("snowflake", 24),
    "SNOWFLAKE_USER": "EXPORTER",
}
_NUMBER, _PROJECT = "0000000", "1111111"
"""What stands for the numbers of an export and its project in a live form."""
_GIT = ("git", "-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.com")

_WORKSPACE_FILE = """\
version: 1
resources: [{patterns}]
default: production
defaults:
  batch_export: {{model: events, interval: hour}}
secrets: [AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, PG_PASSWORD, PG_USER, SNOWFLAKE_PASSWORD,
          SNOWFLAKE_USER]
environments:
  production:
    vars: {{bucket: acme-prod, region: eu-central-1, warehouse: ANALYTICS}}
  staging:
    vars: {{bucket: acme-staging, region: eu-central-1, warehouse: STAGING}}
"""

_S3 = """\
  events-{number:05}:
    project: web-{project:04}
    name: Events {number}
    paused: false
    start_at: "2026-01-01T00:00:00Z"
    destination:
      type: S3
      config:
        bucket_name: ${{var:bucket}}
        region: ${{var:region}}
        prefix: web/{number}/
        file_format: Parquet
        compression: zstd
        exclude_events: [$pageleave, $autocapture]
        aws_access_key_id: ${{secret:env:AWS_ACCESS_KEY_ID}}
        aws_secret_access_key: ${{secret:env:AWS_SECRET_ACCESS_KEY}}
    lifecycle: {{protect: true}}
"""
_SNOWFLAKE = """\
  # Persons, every night.
  persons-{number:05}:
    project: web-{project:04}
    name: "Persons {number}"
    model: persons
    interval: day
    destination:
      type: Snowflake
      config:
        account: acme-eu
        warehouse: ${{var:warehouse}}
        database: analytics
        schema: public
        table_name: persons_{number}
        user: ${{secret:env:SNOWFLAKE_USER}}
        password: ${{secret:env:SNOWFLAKE_PASSWORD}}
    overrides:
      staging: {{paused: true}}
"""
_POSTGRES = """\
  mirror-{number:05}:
    project: web-{project:04}
    name: Mirror {number}
    interval: week
    destination:
      type: Postgres
      config:
        host: db-{project}.example.com
        port: 5432
        database: mirror
        schema: public
        table_name: events_{number}
        has_self_signed_cert: false
        user: ${{secret:env:PG_USER}}
        password: ${{secret:env:PG_PASSWORD}}
    environments: [staging, production]
"""
_HTTP = """\
  copy-{number:05}:
    project: web-{project:04}
    name: Copy {number}
    destination:
      type: HTTP
      config:
        url: https://eu.i.posthog.com/batch/
        token: ${{secret:env:PG_PASSWORD}}
"""
_OF_FILES = ("project", "lifecycle", "overrides", "environments", "paused")
"""What live state does not contain."""
_VARIABLES = {"bucket": "acme-prod", "region": "eu-central-1", "warehouse": "ANALYTICS"}
_REFERENCE = re.compile(r"\$\{(?:var|secret:env):(\w+)\}")


@cache
def _live(text: str) -> str:
    """Return the live form of an export as JSON, with the places of the numbers in it."""
    resolved = _REFERENCE.sub(
        lambda reference: {**_VARIABLES, **SECRETS}[reference[1]],
        text.format(number=_NUMBER, project=_PROJECT),
    )
    [export] = yaml.safe_load(resolved).values()
    fields = {name: value for name, value in export.items() if name not in _OF_FILES}
    return json.dumps({"model": "events", "interval": "hour", **fields})


_FILLED_IN = {
    "test_account_filters": [{"key": "id", "type": "cohort", "value": 1, "operator": "not_in"}],
    "extra_settings": {"recorder_script": "posthog-recorder"},
    "week_start_day": 1,
}
"""What the newest servers set in a new project."""

_SHAPES = (_S3, _SNOWFLAKE, _S3, _POSTGRES)
_WITHOUT_INTEGRATION = (_HTTP,)


@dataclass(frozen=True, slots=True)
class Workload:
    """The size of a workspace, and how live state relates to it.

    The exports are in the first `projects_with_exports`, None for all. With `newest` they are of a
    type that dialect 2026 creates without an integration, and projects are as this dialect makes
    them.
    `different` is the percentage of exports of which a field differs in live state. Without
    `exports_live` and `projects_live` these objects do not exist.
    """

    exports: int
    projects: int
    different: int = 0
    projects_live: bool = True
    exports_live: bool = True
    projects_with_exports: int | None = None
    newest: bool = False

    def numbers_of(self, project: int) -> range:
        """Return the numbers of the exports in a project."""
        share = -(-self.exports // (self.projects_with_exports or self.projects))
        return range(project * share, min(project * share + share, self.exports))

    def shape_of(self, number: int) -> str:
        """Return the text of an export."""
        shapes = _WITHOUT_INTEGRATION if self.newest else _SHAPES
        return shapes[number % len(shapes)]

    def differs(self, number: int) -> bool:
        """Return whether an export differs. Different exports are spread evenly."""
        return number * self.different % 100 < self.different


@dataclass(frozen=True, slots=True)
class Place:
    """Where a workload was written: its workspace and its seed."""

    workspace: Path
    seed: Path

    @property
    def files(self) -> list[str]:
        """Return the paths of the YAML files."""
        return sorted(str(file) for file in self.workspace.rglob("*.yaml"))


def write(workload: Workload, folder: Path, *, in_git: bool = True) -> Place:
    """Write the workspace, in a repository with a commit if `in_git`, and the seed."""
    place = Place(folder / "workspace", folder / "seed.json")
    (place.workspace / "exports").mkdir(parents=True)
    for name, text in _texts(workload):
        (place.workspace / name).write_text(text, encoding="utf-8")
    _write_seed(workload, place.seed)
    if in_git:
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Files"]):
            git(place.workspace, *words)
    return place


def git(folder: Path, *words: str) -> str:
    """Run git in a workspace, and return what it prints."""
    command = [*_GIT, *words]
    ran = subprocess.run(command, cwd=folder, env=environ(), check=True, capture_output=True)
    return ran.stdout.decode().strip()


def environ(**others: str) -> dict[str, str]:
    """Return the variables of a measured process: secrets, and nothing of a user's settings."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return {**inherited, **git, **SECRETS, **others}


def _texts(workload: Workload) -> Iterator[tuple[str, str]]:
    """Yield the files: exports are in one file for each project."""
    patterns = ["projects.yaml", *(["exports/*.yaml"] if workload.exports else [])]
    yield "reconciler.yaml", _WORKSPACE_FILE.format(patterns=", ".join(patterns))
    names = (f"  web-{project:04}: {{name: Web {project}}}" for project in range(workload.projects))
    yield "projects.yaml", "\n".join(["projects:", *names, ""])
    for project in range(workload.projects):
        blocks = [
            workload.shape_of(number).format(number=number, project=project)
            for number in workload.numbers_of(project)
        ]
        if blocks:
            yield f"exports/web-{project:04}.yaml", "\n".join(["batch_exports:", *blocks])


def _write_seed(workload: Workload, path: Path) -> None:
    """Write the seed project by project: the memory of this process counts for its children."""
    key = {"value": API_KEY}
    head = (
        f'"keys": {json.dumps([key])}, "organizations": [{{"id": "{ORGANIZATION}", "name": "Acme"'
    )
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{{head}, "projects": [')
        for project in range(workload.projects if workload.projects_live else 0):
            file.write(",\n" if project else "\n")
            file.write(_project(workload, project))
        file.write("]}]}\n")


def _project(workload: Workload, project: int) -> str:
    exports = []
    for number in workload.numbers_of(project) if workload.exports_live else ():
        live = _live(workload.shape_of(number))
        if workload.differs(number):
            live = live.replace('"public"', '"other"').replace('"web/', '"other/')
        exports.append(live.replace(_NUMBER, str(number)).replace(_PROJECT, str(project)))
    fields = {"name": f"Web {project}", **(_FILLED_IN if workload.newest else {})}
    return f'{json.dumps(fields)[:-1]}, "batch_exports": [{", ".join(exports)}]}}'
