"""What must hold after any run: no duplicates, nothing unasked deleted, every write in the log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.reliability.scenarios import Scenario
from tests.reliability.service import Call

State = Mapping[str, Any]
_OF_THE_SERVICE = """
id uuid team_id project_id organization created_at updated_at last_updated_at last_paused_at
latest_runs api_token secret_api_token live_events_token primary_dashboard group_types
product_intents slack_incoming_webhook ingested_event
"""


def normal(state: State) -> dict[str, Any]:
    """Return everything that a configuration decides, by names. Duplicates stay visible."""
    projects: dict[str, Any] = {}
    for project in state["projects"]:
        if project.get("is_pending_deletion"):
            continue
        exports: dict[str, Any] = {}
        for export in project["batch_exports"]:
            exports.setdefault(export["name"], []).append(_plain(export))
        own = {**_plain(project), "batch_exports": exports}
        projects.setdefault(project["name"], []).append(own)
    return projects


def _plain(shown: Mapping[str, Any]) -> dict[str, Any]:
    ignored = _OF_THE_SERVICE.split()
    return {name: value for name, value in shown.items() if name not in ignored}


def differences(one: Any, two: Any, path: str = "") -> list[str]:
    """Return the paths at which two values differ, with both values."""
    if isinstance(one, dict) and isinstance(two, dict):
        names = one.keys() | two.keys()
        parts = [differences(one.get(n), two.get(n), f"{path}/{n}") for n in sorted(names)]
        return [difference for part in parts for difference in part]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        parts = [differences(a, b, path) for a, b in zip(one, two, strict=True)]
        return [difference for part in parts for difference in part]
    return [] if one == two else [f"{path}: {str(one)[:80]} -> {str(two)[:80]}"]


def duplicates(state: State) -> list[str]:
    """Return the names of what exists twice, as `identities` has them."""
    return [name for name, ids in identities(state).items() if len(ids) > 1]


def identities(state: State) -> dict[str, list[str]]:
    """Return the ids of all projects by name, and of exports by `PROJECT/NAME`."""
    found: dict[str, list[str]] = {}
    for project in state["projects"]:
        found.setdefault(project["name"].strip(), []).append(str(project["id"]))
        for export in project["batch_exports"]:
            name = f"{project['id']}/{export['name'].strip()}"
            found.setdefault(name, []).append(str(export["id"]))
    return found


def unasked_deletes(scenario: Scenario, before: State, after: State) -> list[str]:
    """Return what existed before and is gone, although no plan deletes it."""
    left = set(_ids(after))
    return [
        f"{name} ({identity})"
        for identity, name in _ids(before).items()
        if identity not in left and name not in scenario.deletes
    ]


def foreign_deletes(scenario: Scenario, before: State, calls: Iterable[Call]) -> list[str]:
    """Return the deletions of objects that this run neither planned to delete nor created."""
    seed, made = _ids(before), set()
    foreign = []
    for call in calls:
        made |= {call.made} if call.made is not None else set()
        identity = call.path.rstrip("/").rpartition("/")[2]
        if call.method != "DELETE" or identity in made:
            continue
        if seed.get(identity) not in scenario.deletes:
            foreign.append(f"{call.path} ({call.status})")
    return foreign


def _ids(state: State) -> dict[str, str]:
    projects = {str(project["id"]): str(project["name"]) for project in state["projects"]}
    exports = {
        str(export["id"]): str(export["name"])
        for project in state["projects"]
        for export in project["batch_exports"]
    }
    return projects | exports


def records(log: Path) -> list[dict[str, Any]]:
    """Return the lines of an audit log."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def unlogged_writes(log: Path, calls: Iterable[Call], *, answers: bool) -> list[str]:
    """Return the writes that reached the service and that the log lacks.

    `answers`: also those whose line after the request has another status. The log of a killed run
    has a line before each request at least.
    """
    event = "sent" if answers else "sending"
    logged = Counter(
        (line["method"], line["path"], line["status"] if answers else None)
        for line in records(log)
        if line["event"] == event
    )
    made = Counter(
        (call.method, call.path, call.status if answers else None)
        for call in calls
        if call.method != "GET"
    )
    return [f"{method} {path} {status}" for method, path, status in made - logged]
