"""Fill a new store from a seed file, or with one organization, project and key.

A seed is YAML or JSON:

    organizations:
      - id: 4dc8564d-bd82-1065-2f40-97f7c50f67cf
        name: Acme
        features: [data_pipelines]      # paid features; default: audit_logs, data_pipelines
        projects:
          - id: 1                       # optional
            name: Web
            timezone: UTC               # any project field
            dashboards: [7]             # ids that primary_dashboard may have
            batch_exports:
              - name: Events            # any export field, secrets in the config included
                interval: hour
                destination: {type: NoOp, config: {}}
    users:
      - {id: 1, first_name: Ada, last_name: L, email: ada@example.com}
    keys:
      - value: phx_...
        id: key-1                       # optional, as label and user
        label: CI
        user: ada@example.com           # by email or id; default: the first user
        scopes: ["*"]
        organizations: []               # limits; empty means none
        projects: []
        member_of: []                   # organizations of its user; empty means all
        role: owner                     # or admin, or member
        current_project: true           # false: unpause answers 401
        integration_kinds: [github]     # kinds that lists show, as before May 2026; default: all
    integrations:
      - {id: 7, project: 1, kind: aws-s3, keyless: false}  # keyless: a role signs in, no key
      - {id: 8, project: 1, kind: aws-redshift, config: {host: h}}  # without a host: of AWS
      - {id: 9, project: 1, kind: aws-s3, config: {name: prod, aws_account_id: "123"}}
    flags: []                           # feature flags that are on; default: all
    settings: {auto_pause: false}       # settings of the switchboard

The keys `lived` and `events` give it a past: what happened between its beginning and now.

    lived: 3d                           # the exports are three days old, and have run since
    events:                             # what else happened, at a time before now
      - {ago: 3d, outcomes: [{match: {name: Lake, nth: 5}, status: Failed}]}
      - {ago: 50h, pause: Events}       # the name of an export
      - {ago: 26h, unpause: Events}
      - {ago: 25h, backfill: Events, from: 50h, to: 26h}

Rules for outcomes replace the earlier ones, and stay. The first key of the seed pauses.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

from reconciler.emulator.access import Caller
from reconciler.emulator.batch_exports import BatchExports, ExportFields, Write
from reconciler.emulator.clock import iso
from reconciler.emulator.inputs import BadInput, list_of, mapping_of, read_yaml
from reconciler.emulator.outcomes import outcome_rules
from reconciler.emulator.projects import new_project
from reconciler.emulator.refusal import Refusal
from reconciler.emulator.runs import Runs
from reconciler.emulator.store import StoredExport
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import Settings, World

_NAMESPACE = UUID("6f0b5a9c-6d1c-4c3e-9a56-0f3d1a1c7e55")
_AGE = timedelta(days=30)
_DURATION = re.compile(r"([0-9]{1,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ACTIONS = {"outcomes": (), "pause": (), "unpause": (), "backfill": ("from", "to")}

_INTEGRATION = ("project", "kind", "keyless", "config")
_USER = {"first_name": "Demo", "last_name": "", "email": "demo@example.com"}


def read_seed(path: Path) -> Mapping[str, Any]:
    """Return the seed in a file. Raise BadInput."""
    seed = read_yaml(path)
    if not isinstance(seed, dict) or not seed.get("organizations"):
        raise BadInput(f"{path}: a seed must be a mapping with `organizations`")
    return seed


def default_seed() -> Mapping[str, Any]:
    """Return a seed with one organization, one project and one key with all scopes."""
    project = {"name": "Default project"}
    return {
        "organizations": [{"id": str(uuid4()), "name": "Demo", "projects": [project]}],
        "keys": [{"value": f"phx_{secrets.token_urlsafe(32)}", "scopes": ["*"]}],
    }


def plant(world: World, seed: Mapping[str, Any]) -> None:
    """Fill an empty store. Raise BadInput for an object that the service would refuse."""
    try:
        _plant(world, seed)
    except (Refusal, KeyError, TypeError, AttributeError, ValueError) as error:
        detail = error.detail if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
        raise BadInput(f"invalid seed: {detail}") from None


def _plant(world: World, seed: Mapping[str, Any]) -> None:
    store = world.store
    past, end = Past.of(seed), world.clock.now()
    world.settings = Settings().changed(seed.get("settings", {}))
    world.clock.move(-past.length)
    now = world.clock.now()
    # A service that has lived knows nothing of the time before.
    born = now if past.length else now - _AGE
    flags = seed.get("flags")
    world.flags = frozenset(flags) if flags is not None else None
    for integration in seed.get("integrations", ()):
        own = {name: integration.get(name) for name in _INTEGRATION}
        body = {**own, "created_at": integration.get("created_at", iso(born))}
        store.add_integration(int(integration["id"]), body)
    fields = ExportFields(world, Runs(world))
    for position, organization in enumerate(seed["organizations"]):
        identity = str(organization.get("id") or uuid4())
        features = {name: organization[name] for name in ("features",) if name in organization}
        store.add_organization(
            identity, {"name": organization.get("name", f"Org {position}"), **features}
        )
        for number, project in enumerate(organization.get("projects", ())):
            moment = iso(born + timedelta(seconds=number))
            own = {name: value for name, value in project.items() if name != "batch_exports"}
            project_id = own.pop("id", None)
            body = {**new_project(str(own.get("name", "Default project")), moment), **own}
            project_id = store.add_project(identity, body, identity=project_id)
            exports = [
                _export(fields, export, project_id, iso(born + timedelta(seconds=index)), index)
                for index, export in enumerate(project.get("batch_exports", ()))
            ]
            store.add_exports(exports)
            # The schedules begin now: no runs are made for the past.
            store.begin_schedules(project_id, iso(now), now.timestamp())
    _plant_keys(world, seed, iso(born))
    past.live(world, end)


def _plant_keys(world: World, seed: Mapping[str, Any], born: str) -> None:
    """Store the users and the keys, each key with the id of its user. Raise ValueError."""
    named: dict[Any, int] = {}
    for position, user in enumerate(seed.get("users") or [_USER], start=1):
        identity = int(user.get("id", position))
        uuid = str(uuid5(_NAMESPACE, f"user/{identity}"))
        body = {**dict.fromkeys(_USER, ""), "uuid": uuid, "distinct_id": uuid, **user}
        world.store.add_user(identity, {name: body[name] for name in body if name != "id"})
        named |= {identity: identity, body["email"]: identity}
    for position, key in enumerate(seed.get("keys") or default_seed()["keys"], start=1):
        own = {name: value for name, value in key.items() if name not in ("value", "user")}
        owner = key.get("user", next(iter(named)))
        if owner not in named:
            raise ValueError(f"unknown user {owner!r} of a key")
        body = {
            "id": str(uuid5(_NAMESPACE, f"key/{position}")),
            "label": f"Key {position}",
            "created_at": born,
            "scopes": ["*"],
            **own,
            "user": named[owner],
        }
        # Before 2026 an empty list of scopes means all of them (service.md, 12).
        if not body["scopes"] and not world.dialect.newest:
            body["scopes"] = ["*"]
        world.store.add_key(str(key["value"]), body)


def _export(
    fields: ExportFields, export: Mapping[str, Any], project: int, now: str, index: int
) -> StoredExport:
    identity = export.get("id") or str(uuid5(_NAMESPACE, f"{project}/{index}"))
    try:
        body = fields.checked({"interval": "hour", **export}, Write(project, planted=True))
    except Refusal as refusal:
        where = f"batch export {export.get('name')!r}, {refusal.attr}"
        raise BadInput(f"invalid seed: {where}: {refusal.detail}") from None
    body |= {
        "created_at": export.get("created_at", now),
        "last_updated_at": export.get("last_updated_at", now),
    }
    return StoredExport(str(identity), project, body)


@dataclass(frozen=True, slots=True)
class _Event:
    """An action of a moment before now, its value, and its range where it has one."""

    ago: timedelta
    action: str
    value: Any
    first: timedelta = timedelta()
    last: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Past:
    """How long a service has lived, and what happened, the earliest first."""

    length: timedelta
    events: tuple[_Event, ...] = ()

    @classmethod
    def of(cls, seed: Mapping[str, Any]) -> Past:
        """Return the past of a seed, which is empty by default. Raise BadInput."""
        length = _duration("lived", seed["lived"]) if "lived" in seed else timedelta()
        events = [_event(event) for event in list_of(seed.get("events", []), "events")]
        for event in events:
            if max(event.ago, event.first) > length:
                raise BadInput(f"events: {event.action} is before the service lived")
        return cls(length, tuple(sorted(events, key=lambda event: event.ago, reverse=True)))

    def live(self, world: World, end: datetime) -> None:
        """Move the clock from the beginning to the end, and make everything happen."""
        timeline = Timeline(world)
        exports = BatchExports(world, timeline)
        record = world.store.key(world.store.key_values()[0]) or {}
        caller = Caller(record, (), frozenset(), frozenset(), frozenset())
        for event in self.events:
            world.clock.move(end - event.ago - world.clock.now())
            timeline.catch_up_all()
            if event.action == "outcomes":
                world.outcomes[:] = outcome_rules(event.value)
                continue
            export = _named(world, str(event.value))
            if event.action == "backfill":
                align = timeline.backfills.schedule(export).align
                bounds = align(end - event.first), align(end - event.last)
                timeline.backfills.begin(export, *bounds)
            else:
                exports.toggle(export, caller, None, paused=event.action == "pause")
        world.clock.move(end - world.clock.now())
        timeline.catch_up_all()


def _event(sent: Any) -> _Event:
    given = mapping_of(sent, "event")
    actions = [action for action in _ACTIONS if action in given]
    if len(actions) != 1 or "ago" not in given:
        raise BadInput(f"an event needs ago and one of: {', '.join(_ACTIONS)}")
    action = actions[0]
    mapping_of(sent, f"event {action}", ("ago", action, *_ACTIONS[action]))
    bounds = [_duration(name, given.get(name)) for name in _ACTIONS[action]]
    if bounds and bounds[0] <= bounds[1]:
        raise BadInput("events: the range of a backfill is empty")
    return _Event(_duration("ago", given["ago"]), action, given[action], *bounds)


def _duration(name: str, value: Any) -> timedelta:
    match = _DURATION.fullmatch(str(value))
    if match is None:
        raise BadInput(f"{name} must be a duration like 90m, 6h or 3d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _named(world: World, name: str) -> StoredExport:
    store = world.store
    for organization in store.organizations():
        for export in store.exports(store.project_ids(organization)):
            if export.body["name"] == name:
                return export
    raise BadInput(f"events: unknown export {name!r}")
