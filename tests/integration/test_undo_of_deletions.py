"""A deletion is undone with what the service takes: every type of destination, on every server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.kinds import all_kinds
from reconciler.model.comparison import display_value, field_leaves
from reconciler.model.plan import Change
from reconciler.model.policy import Policy
from reconciler.model.resource import Resource, State
from reconciler.model.values import SecretRef, path_text
from reconciler.planning.undo import AppliedPlan, undo_plan
from tests.conftest import StartService
from tests.integration.test_known_refusals import (
    answer,
    desired_by,
    in_web,
    names_of,
    planned,
    read,
    seed_of,
)
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.fields import BY_INTEGRATION, EXPORT, INLINE, INTEGRATIONS, at
from tests.support.worlds import plan_context

PATH = "/api/projects/1/batch_exports/"


def referring(value: Any) -> Any:
    """Return a value with references for texts of them."""
    if isinstance(value, Mapping):
        return {name: referring(item) for name, item in value.items()}
    return SecretRef.of("env", "X") if str(value).startswith("${secret") else value


def destinations(dialect: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a destination of every type of a server, with all fields and with the least."""
    for tag, fields in (BY_INTEGRATION if dialect == "2026" else INLINE).items():
        named = {"integration": 1 + list(INTEGRATIONS).index(tag)} if tag in INTEGRATIONS else {}
        config = referring(at(fields, 0))
        yield f"{tag} in full", {"type": tag, "config": config, **named}
        if tag == "NoOp":
            yield f"{tag} with nothing", {"type": tag, "config": {}}
        if "file_format" in config:
            yield (
                f"{tag} in Parquet",
                {
                    "type": tag,
                    "config": {**config, "file_format": "Parquet", "include_events": []},
                    **named,
                },
            )
        if "mode" in config:
            inserting = {n: v for n, v in config.items() if n not in ("mode", "copy_inputs")}
            yield f"{tag} by INSERT", {"type": tag, "config": inserting, **named}


def exports(dialect: str) -> list[Resource]:
    rich = {name: value for name, value in at(EXPORT, 0).items() if name != "model"}
    rich |= {"interval": "week", "offset_day": 2} if dialect == "2026" else {}
    return [
        in_web(f"d{n}", name=name, destination=body, **(rich if n % 2 else {}))
        for n, (name, body) in enumerate(destinations(dialect))
    ]


def shown(change: Change) -> dict[str, Any]:
    return {path_text(entry.path): entry.after for entry in change.fields if not entry.secret}


def sent(change: Change) -> dict[str, Any]:
    """Return the plain values that a create sends."""
    (kind,) = (kind for kind in all_kinds() if kind.name == change.address.kind)
    return {
        path_text(leaf.path): display_value(leaf.field, leaf.value)
        for leaf in field_leaves(kind.fields, change.body or {}, live=True)
    }


def stored(running: RunningEmulator) -> dict[str, Any]:
    """Return what is stored of every export, without what the server makes anew."""
    exports = running.exports()
    for body in exports.values():
        for name in ("id", "created_at", "last_updated_at", "latest_runs"):
            body.pop(name, None)
        if body["destination"]["config"].get("include_events") == []:
            del body["destination"]["config"]["include_events"]  # Equal to none.
    return exports


@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_plan_d9_a_deleted_export_is_created_as_it_was_or_refused(
    service_of: StartService, dialect: str, *, is_declared: bool
) -> None:
    """Its secrets come from the configuration, if that declares its destination."""
    running, resources = service_of(seed_of(), "--dialect", dialect), exports(dialect)
    for change in planned(running, *resources).effective:
        assert answer(running, change) == 201, change.name
    before, live = stored(running), read(running, desired_by(running))
    absent = [replace(item, state=State.ABSENT) for item in resources]
    deleted = planned(running, *absent, live=live)
    assert len(deleted.effective) == len(before)
    for change in deleted.effective:
        running.call("DELETE", f"{PATH}{change.live_id}/").raise_for_status()
    desired = desired_by(running, *(absent if is_declared else []))
    undo = undo_plan(
        *(AppliedPlan(deleted), desired, read(running, desired), Policy()),
        all_kinds(),
        context=plan_context(),
    )
    assert {change.name for change in undo.effective} == before.keys()
    for change in undo.effective:
        assert shown(change) == sent(change)
    answers = {change.name: answer(running, change) for change in undo.effective}
    assert names_of(undo) == {name for name, status in answers.items() if status >= 400}
    if is_declared:
        assert names_of(undo) == set()
        assert stored(running) == before
