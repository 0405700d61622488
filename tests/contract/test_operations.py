"""Every operation of the documented interface: the table in docs/api.md is true.

A story of commands runs against the embedded service of every dialect. Each row of the table names
the command whose request it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import reconciler as package
from reconciler.commands.program import COMMANDS
from reconciler.kinds import all_kinds, behaviour_of
from tests.conftest import ROOT, StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import DIALECTS, RunningEmulator

ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
READS = ["batch_export:read", "project:read"]
NOOP = {"interval": "hour", "destination": {"type": "NoOp", "config": {}}}
EXPORTS = [{"name": name, **NOOP} for name in ("Known", "Anywhere")]
WEB = {"id": 1, "name": "Web", "batch_exports": EXPORTS}
SCOPES = {
    "all": ["*"],
    "read": READS,
    "exports": [*READS, "batch_export:write"],
    "projects": [*READS, "project:write"],
}
SEED = {
    "organizations": [{"id": ORGANIZATION, "name": "Acme", "projects": [WEB]}],
    "keys": [{"value": f"phx_{it}", "scopes": SCOPES[it], "label": it} for it in SCOPES],
}
KEYS = {
    "batch_export:read": "phx_read",
    "project:read": "phx_read",
    "batch_export:write": "phx_exports",
    "project:write": "phx_projects",
}
PARTS = {
    ":organization_id": ORGANIZATION,
    ":project_id": "1",
    ":batch_export_id": "[0-9a-f-]{36}",
    ":run_id": "[0-9a-f-]{36}",
    ":id": "[0-9a-f-]+",
}


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    method: str
    path: str
    command: str
    function: str
    scope: str
    on_2025: str
    on_2026: str

    @property
    def pattern(self) -> str:
        """The requests of the operation: method and path."""
        path = self.path
        for name, part in PARTS.items():
            path = re.sub(rf"{name}(?=/)", part, path)
        return rf"{self.method} {path}"

    def on(self, dialect: str) -> str:
        """What servers of a dialect do."""
        return {"interface": "same", "2025": self.on_2025, "2026": self.on_2026}[dialect]

    def expected(self, dialect: str) -> str:
        """The requests that reach it on servers of a dialect, which do not refuse it."""
        pattern = self.pattern
        match self.on(dialect):
            case "same":
                return pattern
            case "below the project":
                below = pattern.replace(f"organizations/{ORGANIZATION}/batch", "projects/1/batch")
                return below.replace("/backfill/", "/backfills?/")
            case "as `backfills/`":
                return pattern.replace("/backfill/", "/backfills/")
            case "from the log of the export":
                return re.sub(r"/runs/.*?/logs/", "/logs/", pattern)
        raise AssertionError(self)


def rows() -> Iterator[Row]:
    table = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    table = table.split("## All operations of the API")[1]
    line = r"^\| `(\w+) (/\S+)` \| `([\w-]+(?: [\w-]+)?)` \| `(\w+)` \| `?([\w:]+)`? \|"
    line += r" ([^|]+) \| ([^|]+) \|"
    for match in re.finditer(line, table, re.MULTILINE):
        yield Row(*match.groups())


ROWS = tuple(rows())


@dataclass
class Story:
    """The commands of a dialect so far, with the requests of each."""

    running: RunningEmulator
    folder: Path
    dialect: str
    ran: dict[str, tuple[Ran, list[str]]] = field(default_factory=dict)

    def run(self, name: str, scope: str, *words: str) -> Ran:
        self.running.clear_requests()
        environ = {**self.running.environ(), "RECONCILER_API_KEY": KEYS[scope]}
        ran = reconciler(*words, "-C", self.folder, environ=environ)
        requests = [f"{item['method']} {item['path']}" for item in self.running.requests()]
        self.ran[name] = (ran, requests)
        return ran

    def files(self, **resources: Mapping[str, Any]) -> None:
        workspace = {"policy": {"allow_project_deletion": True}, "version": 1}
        exports = {key: value for key, value in resources.items() if "interval" in value}
        projects = {key: value for key, value in resources.items() if key not in exports}
        files = {"reconciler.yaml": workspace, "a.yaml": {"batch_exports": exports}}
        files["b.yaml"] = {"projects": projects or {"web": {"id": "1", "name": "Web"}}}
        write(self.folder, {name: json.dumps(content) for name, content in files.items()})

    def of(self, command: str) -> list[tuple[Ran, list[str]]]:
        """Return the runs of a command."""
        return [run for name, run in self.ran.items() if name.partition(":")[0] == command]

    def refused(self, reason: str, command: str) -> bool:
        """Return whether a run of a command failed for a reason."""
        return any(
            ran.code in (1, 5) and reason in ran.out + ran.err for ran, _ in self.of(command)
        )

    def seen(self, pattern: str, command: str) -> bool:
        """Return whether a run of a command made a request that matches."""
        return any(
            re.fullmatch(pattern, request)
            for ran, requests in self.of(command)
            if ran.code in (0, 2)
            for request in requests
        )


def export(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **NOOP, **fields}


def write_and_read(story: Story) -> None:
    """Run every command of the table."""
    in_project = {"project": {"id": 1}}
    write_exports, write_projects = "batch_export:write", "project:write"
    apply = ("apply", "--auto-approve", "--no-inventory")
    story.files(lake=export("Lake", **in_project))
    story.run("apply:create", write_exports, *apply)
    story.files(pool=export("Pool"))
    story.run("apply:create-anywhere", write_exports, *apply)
    story.files(shop={"name": "Shop"})
    story.run("apply:create-project", write_projects, *apply)
    story.files(shop={"name": "Shop", "timezone": "Europe/Berlin"})
    story.run("apply:update-project", write_projects, *apply)
    story.files(shop={"name": "Shop", "state": "absent"})
    story.run("apply:delete-project", write_projects, *apply)
    lake = export("Lake", **in_project, end_at="2200-01-01T00:00:00Z")
    for change in ({"end_at": "2201-01-01T00:00:00Z"}, {"paused": True}, {"paused": False}):
        story.files(lake=lake, anywhere=export("Anywhere", **change))
        story.run(f"apply:{change}", write_exports, *apply)
    story.run("pause", write_exports, "pause", "lake", "--auto-approve")
    story.run("unpause", write_exports, "unpause", "lake", "--auto-approve")
    story.running.advance(hours=3)
    for name in ("lake", "anywhere"):
        range_ = ("--from", "2026-01-01T00:00Z", "--to", "2026-01-01T02:00Z")
        words = ("backfill", name, *range_, "--auto-approve")
        story.run(f"backfill:{name}", write_exports, *words)
    read(story)
    # One at a time: several are checked by a list.
    story.files(lake=export("Lake", **in_project, state="absent"))
    story.run("apply:delete", write_exports, *apply)
    story.files(anywhere=export("Anywhere", state="absent"))
    story.run("apply:delete-anywhere", write_exports, *apply)


def read(story: Story) -> None:
    """Run every command that only reads, and the reset of a token."""
    scope = "batch_export:read"
    story.run("status", scope, "status")
    listed = story.run("runs:list", scope, "runs", "lake", "--format", "json").out
    run = json.loads(listed)["runs"][0]["id"]
    story.run("runs:one", scope, "runs", "lake", "--run", run)
    story.run("logs:export", scope, "logs", "lake")
    story.run("logs:run", scope, "logs", "lake", "--run", run)
    for action in ("list", "show", "activity", "demo-data"):
        name = ("web",) if action != "list" else ()
        story.run(f"projects {action}", "project:read", "projects", action, *name)
    reset = ("projects", "reset-token", "web", "--auto-approve")
    story.run("projects reset-token", "project:write", *reset)


@pytest.fixture(scope="module")
def story_of(
    service_of: StartService, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Story]:
    """Return a function of a dialect: its story, which runs once."""
    known: dict[str, Story] = {}

    def story(dialect: str) -> Story:
        if dialect not in known:
            running = service_of(SEED, "--dialect", dialect)
            known[dialect] = Story(running, tmp_path_factory.mktemp(dialect), dialect)
            write_and_read(known[dialect])
        return known[dialect]

    return story


def test_the_table_has_every_operation_of_the_interface() -> None:
    assert len({(row.method, row.path) for row in ROWS}) == 28
    counts = [sum(prefix in row.path for row in ROWS) for prefix in ("s/:project_id/", "/batch_")]
    assert counts == [12, 20]
    assert {row.command.split()[0] for row in ROWS} <= COMMANDS.keys()
    assert all(callable(getattr(package, row.function)) for row in ROWS)
    scopes = {it.scope for kind in all_kinds() for it in behaviour_of(kind).operations}
    assert scopes - {None, "activity_log:read"} == {"batch_export:read", "batch_export:write"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_every_operation_is_reached_or_explained(
    row: Row, dialect: str, story_of: Callable[[str], Story]
) -> None:
    story = story_of(dialect)
    if row.on(dialect).startswith("refused"):
        reason = row.on(dialect).removeprefix("refused: ").replace("refused to keys", "API key")
        assert story.refused(reason.strip("`"), row.command), story.of(row.command)
    else:
        assert story.seen(row.expected(dialect), row.command), story.of(row.command)
