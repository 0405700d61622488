"""What the tests apply: live state, the configuration that was applied, and the one to apply."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.git.inventory import ref_of
from reconciler.git.repository import Repository
from tests.reliability.service import KEY, ORGANIZATION
from tests.support.cli import write
from tests.support.git import Git
from tests.support.inventories import write_inventory

ENVIRON = {"RECONCILER_SECRET_TOKEN": "tok-1"}
"""The secret that configurations refer to."""
_POLICY = {"prune": True, "allow_project_deletion": True, "max_deletes": 10_000}
_WORKSPACE = {"version": 1, "policy": _POLICY}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A live state and two versions of the files. Without a base there is no git.

    deletes
        The names of what the plan deletes or replaces. Nothing else may be deleted.
    """

    dialect: str
    projects: tuple[Mapping[str, Any], ...]
    head: Mapping[str, Any]
    base: Mapping[str, Any] | None = None
    deletes: frozenset[str] = frozenset()

    @property
    def seed(self) -> dict[str, Any]:
        return {
            "organizations": [
                {"id": ORGANIZATION, "name": "Acme", "projects": list(self.projects)}
            ],
            "keys": [{"value": KEY}],
        }

    def written(self, folder: Path) -> Path:
        """Write the files, commit both versions if there is a base, and return the folder."""
        for body in (self.base, self.head):
            if body is not None:
                write(folder, {"reconciler.yaml": json.dumps(_WORKSPACE)})
                write(folder, {"all.yaml": json.dumps(body)})
            if self.base is not None:
                Git.init(folder).commit()
        return folder

    def record(self, folder: Path, base_url: str, state: Mapping[str, Any]) -> None:
        """Record the base as applied to the objects of a state that have its names."""
        repository = Repository.containing(folder)
        if self.base is None or repository is None:
            return
        ids = {project["name"]: project for project in state["projects"]}
        commit, lines = str(repository.commit("HEAD~1")), dict[str, Any]()
        for key, body in self.base["projects"].items():
            if body["name"] in ids:
                at = {"id": str(ids[body["name"]]["id"]), "name": body["name"]}
                lines[f"project.{key}"] = {**at, "commit": commit}
        for key, body in self.base["batch_exports"].items():
            project = ids.get(self.base["projects"][body["project"]]["name"])
            for export in project["batch_exports"] if project else ():
                if export["name"] == body["name"]:
                    at = {"id": export["id"], "name": body["name"], "parent": str(project["id"])}
                    lines[f"batch_export.{key}"] = {**at, "commit": commit}
        ref = ref_of(repository, "default", base_url, ORGANIZATION)
        write_inventory(folder, ref, commit, lines)


@dataclass(slots=True)
class _Building:
    """A scenario in the making."""

    dialect: str
    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    base: dict[str, Any] = field(default_factory=lambda: {"projects": {}, "batch_exports": {}})
    head: dict[str, Any] = field(default_factory=lambda: {"projects": {}, "batch_exports": {}})
    deletes: set[str] = field(default_factory=set)
    ids: int = 0

    def project(
        self, key: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> None:
        """Add a project: to create without a state before, to remove without one after."""
        name = key.title()
        if before is not None:
            identity = len(self.live) + 1
            self.live[key] = {"id": identity, "name": name, **before, "batch_exports": []}
            self.base["projects"][key] = {"name": name, **before}
        if after is not None:
            self.head["projects"][key] = {"name": name, **after}

    def removed_project(self, key: str) -> None:
        """Add a project with two exports, all removed from the files."""
        self.project(key, {}, None)
        for number in range(2):
            self.export(f"{key}{number}", noop("x"), None, project=key)
        self.deletes |= {key.title(), *(f"{key}{number}".upper() for number in range(2))}

    def export(
        self,
        key: str,
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        *,
        project: str,
        target: str | None = None,
    ) -> None:
        """Add an export: to create, to change, to remove from the files, or to move to `target`."""
        name = key.upper()
        if before is not None:
            self.live[project]["batch_exports"].append({"name": name, **_as_live(before)})
            self.base["batch_exports"][key] = {"name": name, "project": project, **before}
        if after is not None:
            project = target or project
            self.head["batch_exports"][key] = {"name": name, "project": project, **after}

    def unmanaged(self, project: str, name: str) -> None:
        self.live[project]["batch_exports"].append({"name": name, **_as_live(noop("u"))})

    def done(self, *, git: bool = True) -> Scenario:
        return Scenario(
            self.dialect,
            tuple(self.live.values()),
            self.head,
            self.base if git else None,
            frozenset(self.deletes),
        )


def noop(argument: str, **fields: Any) -> dict[str, Any]:
    """Return an export that goes nowhere. It has no secrets."""
    destination = {"type": "NoOp", "config": {"arg": argument}}
    return {"interval": "hour", "paused": False, "destination": destination, **fields}


def http(**fields: Any) -> dict[str, Any]:
    """Return an export with a secret."""
    config = {
        "url": "https://eu.i.posthog.com/batch/",
        "token": "${secret:env:RECONCILER_SECRET_TOKEN}",
    }
    return {"interval": "day", "destination": {"type": "HTTP", "config": config}, **fields}


def _as_live(declared: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(declared)
    for name, value in ENVIRON.items():
        text = text.replace(f"${{secret:env:{name}}}", value)
    live: dict[str, Any] = json.loads(text)
    return live


def standard(dialect: str) -> Scenario:
    """Return the standard plan.

    12 creates (2 projects, 10 exports), 4 updates, 3 pauses, 2 unpauses, 5 deletes (2 exports, and
    a project with 2 more) and 2 replacements.
    """
    plan = _Building(dialect)
    plan.project("web", {"timezone": "UTC"}, {"timezone": "Europe/Berlin"})
    plan.project("app", {}, {})
    plan.project("lab", {}, {})
    plan.project("new", None, {"timezone": "Europe/Berlin"})
    plan.project("shop", None, {})
    for number, project in enumerate(["web", "web", "web", "app", "app", "new", "new", "shop"]):
        plan.export(f"c{number}", None, noop(f"c{number}"), project=project)
    plan.export("c8", None, http(), project="shop")
    plan.export("c9", None, noop("c9", paused=True), project="web")
    for number in range(3):
        plan.export(f"u{number}", noop("old"), noop("new", interval="day"), project="web")
        plan.export(f"p{number}", noop("p"), noop("p", paused=True), project="app")
    for number in range(2):
        plan.export(f"q{number}", noop("q", paused=True), noop("q"), project="app")
    plan.export("d0", noop("d"), {**noop("d"), "state": "absent"}, project="web")
    plan.export("d1", noop("d"), None, project="web")
    plan.export("r0", noop("r"), noop("r"), project="web", target="app")
    plan.export("r1", http(), http(), project="app", target="web")
    for number in range(4):
        plan.export(f"k{number}", noop("k"), noop("k"), project="lab")
    plan.unmanaged("web", "Unmanaged")
    plan.unmanaged("lab", "Another")
    plan.deletes = {"D0", "D1", "R0", "R1"}
    plan.removed_project("bin")
    return plan.done()


def drawn(dice: random.Random, dialect: str) -> Scenario:
    """Return a random plan, with moves and removals in one of four."""
    git = dice.random() < 0.25
    plan = _Building(dialect)
    existing = [f"p{number}" for number in range(dice.randint(1, 3))]
    fresh = [f"n{number}" for number in range(dice.randint(0, 2))]
    for key in existing:
        zones = dice.choices(["UTC", "Europe/Berlin"], k=2)
        plan.project(key, {"timezone": zones[0]}, {"timezone": zones[1]})
    for key in fresh:
        plan.project(key, None, {"timezone": "UTC"})
    fates = ["create", "create", "update", "pause", "unpause", "absent", "keep", "type"]
    fates += ["move", "remove"] if git else []
    for number in range(dice.randint(2, 9)):
        key = f"e{number}"
        fate = dice.choice(fates)
        body = http() if dice.random() < 0.25 else noop(key)
        project = dice.choice(existing)
        if fate == "create":
            plan.export(key, None, body, project=dice.choice(existing + fresh))
        elif fate == "update":
            plan.export(key, body, {**body, "interval": "week"}, project=project)
        elif fate in ("pause", "unpause"):
            stopped = fate == "pause"
            before, after = {**body, "paused": not stopped}, {**body, "paused": stopped}
            plan.export(key, before, after, project=project)
        elif fate == "absent":
            plan.export(key, body, {**body, "state": "absent"}, project=project)
        elif fate == "type":
            plan.export(key, noop(key), http(), project=project)
        elif fate == "move":
            plan.export(key, body, body, project=project, target=dice.choice(existing + fresh))
        else:
            plan.export(key, body, None if fate == "remove" else body, project=project)
        if fate in ("absent", "move", "remove", "type"):
            plan.deletes.add(key.upper())
    plan.unmanaged(existing[0], "Unmanaged")
    if git and dice.random() < 0.5:
        plan.removed_project("bin")
    return plan.done(git=git)


def small(dialect: str = "interface") -> Scenario:
    """Return a plan of an update, and of three creates, one of them in a new project."""
    plan = _Building(dialect)
    plan.project("web", {"timezone": "UTC"}, {"timezone": "UTC"})
    plan.project("new", None, {"timezone": "UTC"})
    plan.export("c", None, noop("c"), project="web")
    plan.export("n", None, noop("n"), project="new")
    plan.export("u", noop("old"), noop("new"), project="web")
    return plan.done(git=False)


def projects_of(count: int, exports: int = 0, *, live: bool = True) -> Scenario:
    """Return projects with exports in them, which exist and match the files, or do not exist."""
    projects: list[dict[str, Any]] = []
    inside: dict[str, Any] = {}
    for n in range(count):
        own = range(n * exports, (n + 1) * exports)
        below = [{"name": f"E{e}", **noop("x")} for e in own]
        named = {"id": 1 + n, "name": f"P{n}", "timezone": "UTC"}
        projects.append({**named, "batch_exports": below})
        inside |= {f"e{e}": {"name": f"E{e}", "project": f"p{n}", **noop("x")} for e in own}
    head = {
        "projects": {f"p{n}": {"name": f"P{n}", "timezone": "UTC"} for n in range(count)},
        "batch_exports": inside,
    }
    return Scenario("interface", tuple(projects) if live else (), head)


def creates_of(count: int) -> Scenario:
    """Return a plan of creates in one live project."""
    exports = {f"e{n}": {"name": f"E{n}", "project": "web", **noop("x")} for n in range(count)}
    head = {"projects": {"web": {"name": "Web"}}, "batch_exports": exports}
    return Scenario("interface", ({"id": 1, "name": "Web"},), head)
