"""The past of a seed: what happened between its beginning and now.

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
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.emulator.access import Caller
from reconciler.emulator.inputs import BadInput, list_of, mapping_of
from reconciler.emulator.outcomes import outcome_rules
from reconciler.emulator.resources.batch_exports import BatchExports
from reconciler.emulator.store import StoredExport
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import World

_DURATION = re.compile(r"([0-9]{1,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ACTIONS = {
    "outcomes": (),
    "pause": (),
    "unpause": (),
    "backfill": ("from", "to"),
}


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
