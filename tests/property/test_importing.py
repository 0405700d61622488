"""After an import of any live state that the service accepts, the plan is empty."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reconciler.commands.import_choice import key_of
from reconciler.commands.import_live import import_live
from reconciler.commands.plan import plan
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, Field, Kind
from reconciler.model.schemas import (
    Boolean,
    DecimalText,
    Instant,
    Integer,
    ListOf,
    MergedObject,
    OpenObject,
    SetOf,
    schema,
)
from tests.conftest import LONG
from tests.support.emulator import DIALECTS, RunningEmulator, start_emulator

KINDS = {kind.name: kind for kind in all_kinds()}
NASTY = [
    *("no", "On", "y", "1e3", "0o7", "1_000", "12:30", ".5", "~", "null", "<<", "=", "2026-01-01"),
    *(": #", "- x", "a: b", "a #b", "${var:x}", "$${", "$", "{a}", "[b]", "!t", "&a", "*a", "%d"),
    *("'", '"', "\\", "a\nb", "a\n\n", "a\tb", " a", "a ", "\u2028", "a\x85b", "\ufeff", "\x07"),
    *("日本", "🚀"),
]
text = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12),
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), text)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(
    lambda moment: moment.isoformat() + "Z"
)
BY_SHAPE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Boolean, st.booleans()),
    (Integer, st.integers(0, 60)),
    (DecimalText, st.integers(0, 100).map(lambda percent: percent / 100)),
    (Instant, MOMENTS),
    ((ListOf, SetOf), st.lists(text, max_size=3)),
    ((MergedObject, OpenObject), st.dictionaries(text, json_values, max_size=3)),
]


def values_of(field: Field, node: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that fit a field by its schema and its type."""
    listed = node.get("x-open-enum") or node.get("enum")
    if listed:
        return st.sampled_from(listed)
    for shapes, strategy in BY_SHAPE:
        if isinstance(field.type, shapes):
            return strategy
    return text


@st.composite
def destinations(draw: st.DrawFn) -> dict[str, Any]:
    ((_, tagged),) = KINDS["batch_export"].variants
    name = draw(st.sampled_from(sorted(tagged.variants)))
    known = (schema(f"destinations/{name}") or {})["properties"]
    config = {
        field.name: draw(values_of(field, known.get(field.name, {})))
        for field in tagged.variants[name]
        if field.required or field.secret or draw(st.integers(0, 2)) == 0
    }
    if name == "HTTP":
        config["url"] = "https://eu.i.posthog.com/batch/"
    return {"type": name, "config": config}


@st.composite
def bodies(draw: st.DrawFn, kind: Kind) -> dict[str, Any]:
    """Draw the body of a create; the service may refuse it."""
    known = (schema(kind.name) or {})["properties"]
    body = {
        field.name: draw(values_of(field, known.get(field.name, {})))
        for field in kind.fields
        if field.variant is None and draw(st.integers(0, 3)) == 0
    }
    body["name"] = draw(text)
    if kind.parent is not None:
        body["interval"] = draw(st.sampled_from(["hour", "day", "week", "every 5 minutes"]))
        body["model"] = draw(st.sampled_from(["events", "persons"]))
        body["timezone"] = draw(st.sampled_from(["UTC", "Asia/Tokyo", None]))
        body["destination"] = draw(destinations())
    else:
        body["timezone"] = draw(st.sampled_from(["UTC", "Asia/Tokyo"]))
    return body


worlds = st.lists(
    st.tuples(bodies(KINDS["project"]), st.lists(bodies(KINDS["batch_export"]), max_size=4)),
    min_size=1,
    max_size=3,
)


@pytest.fixture(scope="module", params=DIALECTS)
def service(request: pytest.FixtureRequest) -> Iterator[RunningEmulator]:
    with start_emulator(extra=("--dialect", request.param)) as running:
        yield running


def populate(
    service: RunningEmulator, world: list[tuple[dict[str, Any], list[dict[str, Any]]]]
) -> None:
    """Create the objects; where the service refuses one, create it with fewer fields."""
    service.reset()
    for project, exports in world:
        path = f"/api/organizations/{service.organization}/projects/"
        made = create(service, path, project)
        path = f"/api/projects/{made or service.project_id}/batch_exports/"
        for export in exports:
            create(service, path, export)


def create(service: RunningEmulator, path: str, body: dict[str, Any]) -> int | None:
    """Create an object with as many of the fields as the service accepts; return its id."""
    tries = [body]
    for name in sorted(body.keys() - {"name", "interval", "destination"}):
        tries.append({key: value for key, value in tries[-1].items() if key != name})
    if "destination" in body:
        tries.append({**tries[-1], "destination": {"type": "NoOp", "config": {}}})
    for attempt in tries:
        answer = service.call("POST", path, attempt)
        if answer.status_code == 201:
            identity: int = answer.json()["id"]
            return identity
    return None


@settings(
    # An example takes up to a second: about twenty requests, an import and a plan.
    max_examples=50 if LONG else 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    # Shrinking would take minutes: a failure is reported as it is.
    phases=[Phase.explicit, Phase.generate],
)
@given(world=worlds)
def test_the_plan_after_an_import_is_empty(service: RunningEmulator, world: list[Any]) -> None:
    populate(service, world)
    runtime = Runtime(service.environ(), now=lambda: datetime(2026, 6, 1, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "reconciler.yaml").write_text("version: 1\n")
        workspace = Workspace(folder, runtime=runtime)
        done = asyncio.run(import_live(workspace))
        planned = asyncio.run(plan(workspace)).plan
    changed = [change for change in planned.changes if change.action is not Action.NO_OP]
    assert changed == []
    live = service.state()["projects"]
    # Lists omit exports of one type: they can be imported by id only.
    listed = [
        export
        for project in live
        for export in project["batch_exports"]
        if export["destination"]["type"] != "Workflows"
    ]
    everything = len(live) + len(listed)
    assert len(done.adopted) + len(done.refused) == everything, done.refused
    assert len(planned.changes) == len(done.adopted)


@given(name=st.text())
def test_a_generated_key_is_valid_in_files(name: str) -> None:
    key = key_of(name)
    assert len(key) <= 60
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert key == key_of(key)
    assert json.dumps(key) == f'"{key}"'
