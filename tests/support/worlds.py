"""Desired and live state, written out or drawn by hypothesis, and a pure server."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.applying.check import modifications
from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import PlanOptions, Policy
from reconciler.model.values import Address, SecretRef
from reconciler.planning.inventory import Applied, Inventory, Record, hash_of_secrets, parent_in
from reconciler.planning.make import make_plan
from reconciler.planning.match import match
from reconciler.planning.select import PlanContext, select

KINDS = all_kinds()
BY_NAME = {kind.name: kind for kind in KINDS}
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
COMMIT = "c0ffee" + "0" * 34
ENVIRON = {
    "RECONCILER_BASE_URL": "https://eu.example.com",
    "RECONCILER_ORGANIZATION": "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0",
    "RECONCILER_API_KEY": "unused",
}


def plan_context(
    options: PlanOptions | None = None,
    base: Desired | Inventory | None = None,
    live: Live | None = None,
    desired: Desired | None = None,
) -> PlanContext:
    return PlanContext(
        now=NOW,
        tool_version="test",
        inventory=inventory_of(base, live, desired) if isinstance(base, Desired) else base,
        options=options or PlanOptions(),
    )


def inventory_of(applied: Desired, live: Live | None, now: Desired | None = None) -> Inventory:
    """Return the inventory after a complete apply of a configuration to some live state.

    `now` is the configuration of today, whose secrets count.
    """
    present = {a: r for a, r in applied.resources.items() if r.state is State.PRESENT}
    was = replace(applied, resources=present)
    matches = match(was, live, policy=Policy(), kinds=KINDS).matches if live else {}
    entries = {
        address: Applied(
            pair.live.id if pair.live else f"gone-{address.key}",
            pair.resource.name,
            pair.live.parent_id if pair.live else pair.parent_id,
            COMMIT,
            hash_of_secrets(pair.resource, {}),
            was=present[address],
            above=parent_in(present, present[address]),
        )
        for address, pair in matches.items()
    }
    return Inventory(
        entries,
        hashes=hashes_of(now or applied),
        former=applied,
        record=Record("refs/reconciler/test", "f" * 40, COMMIT, NOW, 3),
    )


def hashes_of(desired: Desired) -> dict[Address, str]:
    hashes = {at: hash_of_secrets(item, {}) for at, item in desired.resources.items()}
    return {at: digest for at, digest in hashes.items() if digest is not None}


def planned(
    desired: Desired,
    live: Live,
    policy: Policy | None = None,
    *,
    options: PlanOptions | None = None,
    base: Desired | Inventory | None = None,
) -> Plan:
    context = plan_context(options, base, live, desired)
    return make_plan(select(desired, live, policy or Policy(), KINDS, context=context))


def desired_of(*resources: Resource) -> Desired:
    return Desired(
        "staging",
        "https://x.example",
        "org",
        {resource.address: resource for resource in resources},
    )


def project(key: str = "web", **spec: Any) -> Resource:
    return Resource(Address("project", key), {"name": key.title(), **spec})


def export(
    key: str = "lake",
    *,
    parent: str | None = "web",
    lifecycle: Lifecycle | None = None,
    state: State = State.PRESENT,
    pinned_id: str | None = None,
    secret_version: str | None = None,
    **spec: Any,
) -> Resource:
    return Resource(
        Address("batch_export", key),
        {"name": key.title(), "interval": "hour", "destination": s3(), **spec},
        parent=ParentRef(key=parent) if parent is not None else None,
        lifecycle=lifecycle or Lifecycle(),
        state=state,
        pinned_id=pinned_id,
        secret_version=secret_version,
    )


def s3(**config: Any) -> dict[str, Any]:
    whole = {"bucket_name": "b", "region": "r", "prefix": "p/", **config}
    return {"type": "S3", "config": whole}


def with_secrets(**config: Any) -> dict[str, Any]:
    return s3(
        aws_access_key_id=SecretRef.of("env", "ID"),
        aws_secret_access_key=SecretRef.of("env", "KEY"),
        **config,
    )


def live_project(identity: int = 1, name: str = "Web", **body: Any) -> LiveObject:
    whole = {"id": identity, "name": name, "timezone": "UTC", **body}
    return LiveObject("project", str(identity), name, whole)


def live_export(
    identity: str = "e1", name: str = "Lake", *, parent: int = 1, **body: Any
) -> LiveObject:
    whole = {
        "id": identity,
        "team_id": parent,
        "name": name,
        "model": "events",
        "interval": "hour",
        "paused": False,
        "destination": s3(),
        "sql_query": None,
        "created_at": "2026-01-01T00:00:00Z",
        "last_updated_at": "2026-01-01T00:00:00Z",
        **body,
    }
    return LiveObject("batch_export", identity, name, whole, parent_id=str(parent))


def live_of(*objects: LiveObject, dialect: Dialect | None = Dialect.INTERFACE) -> Live:
    by_kind: dict[str, list[LiveObject]] = {kind.name: [] for kind in KINDS}
    for live_object in objects:
        by_kind[live_object.kind].append(live_object)
    return Live({kind: tuple(listed) for kind, listed in by_kind.items()}, dialect=dialect)


def stale_changes(plan: Plan, live: Live) -> list[str]:
    """Return how the objects of an updating plan differ from what it was made from."""
    bodies = {item.id: item.body for items in live.objects.values() for item in items}
    modified = [
        modifications(BY_NAME[change.address.kind], change, bodies[change.live_id], mask=str)
        for change in plan.effective
        if change.live_id is not None
    ]
    return [text for text in modified if text]


class PureServer:
    """Apply plans by the rules of the interface: PATCH merges, secrets are not shown."""

    def __init__(self, live: Live) -> None:
        self.dialect = live.dialect
        self.objects = {
            (live_object.kind, live_object.id): copy.deepcopy(live_object)
            for listed in live.objects.values()
            for live_object in listed
        }
        self.created: dict[Address, str] = {}
        self._numbers = itertools.count()
        self.deleted: list[str] = []

    def apply(self, plan: Plan) -> None:
        for change in plan.effective:
            assert all(
                needed in {planned.id for planned in plan.effective} for needed in change.depends_on
            )
            if change.action is Action.CREATE:
                self._create(change)
            elif change.action is Action.DELETE:
                self.deleted.append(change.live_id or "")
                self._delete(change.address.kind, change.live_id or "")
            elif change.action is Action.REPLACE:
                self._create(change)
                del self.objects[change.address.kind, change.live_id or ""]
            elif change.action is Action.UPDATE:
                self._patch(change.address.kind, change.live_id or "", change.body or {})
            else:
                self._patch(
                    change.address.kind,
                    change.live_id or "",
                    {"paused": change.action is Action.PAUSE},
                )

    def _delete(self, kind: str, identity: str) -> None:
        """Delete an object with everything in it."""
        del self.objects[kind, identity]
        for child_kind, child_id in list(self.objects):
            child = self.objects[child_kind, child_id]
            if (BY_NAME[child_kind].parent, child.parent_id) == (kind, identity):
                del self.objects[child_kind, child_id]

    def _create(self, change: Any) -> None:
        kind = BY_NAME[change.address.kind]
        identity = f"new-{next(self._numbers)}-{change.address.key}"
        self.created[change.address] = identity
        parent = change.parent_id
        if parent is None and change.parent is not None and kind.parent:
            parent = self.created[Address(kind.parent, change.parent.key)]
        sent = {**_shown(change.body), **_shown(change.after_create or {})}
        body = {"id": identity, "created_at": NOW.isoformat(), **sent}
        if kind.parent_field:
            body[kind.parent_field] = parent
        body.setdefault("sql_query", None)
        self._keep(kind.name, identity, body, parent)

    def _patch(self, kind: str, identity: str, body: Mapping[str, Any]) -> None:
        old = self.objects[kind, identity]
        self._keep(kind, identity, _merged(old.body, _shown(body)), old.parent_id)

    def _keep(self, kind: str, identity: str, body: Mapping[str, Any], parent: Any) -> None:
        name = str(body["name"]).strip()
        self.objects[kind, identity] = LiveObject(kind, identity, name, body, parent_id=parent)

    def live(self) -> Live:
        return live_of(*self.objects.values(), dialect=self.dialect)


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _shown(item) for key, item in value.items() if not isinstance(item, SecretRef)}
    return value


def _merged(old: Any, new: Any) -> Any:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}


# Strategies

_names = st.text("abcXYZ üß/:#", min_size=1, max_size=6).filter(lambda text: text.strip())
_moments = st.sampled_from(
    ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-02-01", "2027-01-01 00:00:00"]
)
_configs = st.fixed_dictionaries(
    {"bucket_name": st.sampled_from("ab"), "region": st.just("r"), "prefix": _names},
    optional={
        "compression": st.sampled_from([None, "gzip", "brotli"]),
        "max_file_size_mb": st.sampled_from([None, 5, 10]),
        "exclude_events": st.lists(st.sampled_from("abc"), max_size=3),
        "use_virtual_style_addressing": st.booleans(),
        "aws_access_key_id": st.just(SecretRef.of("env", "ID")),
    },
)
_specs = st.fixed_dictionaries(
    {
        "interval": st.sampled_from(["hour", "day"]),
        "destination": st.builds(lambda config: {"type": "S3", "config": config}, _configs),
    },
    optional={
        "model": st.sampled_from(["events", "persons", None]),
        "paused": st.booleans(),
        "start_at": st.none() | _moments,
        "end_at": st.none() | _moments,
        "sql_query": st.sampled_from(["select event from events", "SELECT event, 1+1 FROM events"]),
    },
)
_project_specs = st.fixed_dictionaries(
    {},
    optional={
        "timezone": st.sampled_from(["UTC", "Europe/Berlin"]),
        "anonymize_ips": st.booleans(),
        "session_recording_sample_rate": st.sampled_from([0, 0.5, "0.25", 1, None]),
        "app_urls": st.lists(st.sampled_from(["https://a", "https://b", ""]), max_size=3),
        "modifiers": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
        "primary_dashboard": st.none() | st.integers(1, 5),
    },
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Desired, Live]:
    """Draw desired and live state that overlap, without duplicate names."""
    keys = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    resources = [
        Resource(Address("project", key), {"name": f"P{key}", **draw(_project_specs)})
        for key in keys
    ]
    objects: list[LiveObject] = []
    for number, key in enumerate(draw(st.lists(st.sampled_from("abcde"), max_size=4, unique=True))):
        objects.append(live_project(number + 1, f"P{key}", **_shown(draw(_project_specs))))
    for number in range(draw(st.integers(0, 5))):
        state = draw(st.sampled_from([State.PRESENT, State.PRESENT, State.ABSENT]))
        resources.append(
            Resource(
                Address("batch_export", f"e{number}"),
                {"name": f"E{number}", **draw(_specs)},
                parent=ParentRef(key=draw(st.sampled_from(keys))),
                state=state,
            )
        )
    for number in range(draw(st.integers(0, 6))):
        if objects:
            parent = draw(st.sampled_from([o for o in objects if o.kind == "project"]))
            spec = _shown(draw(_specs))
            objects.append(live_export(f"id{number}", f"E{number}", parent=int(parent.id), **spec))
    return desired_of(*resources), live_of(*objects)
