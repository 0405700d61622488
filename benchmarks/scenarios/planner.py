"""Measure planning: 10,000 exports and 10,000 live ones, of which 5 % differ.

The planner alone runs in this process, with the garbage collector paused as in the command, and
DeepDiff on the same values in the same run.
"""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime
from typing import Any

from deepdiff import DeepDiff

from benchmarks.measuring import Settings
from benchmarks.results import Result, ratio_of
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.kind import Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.values import SecretRef
from reconciler.planning.draft import PlanContext
from reconciler.planning.make import make_plan

EXPORTS = 10_000
DIFFERENT_EVERY = 20


def config_of(number: int, *, bucket: str) -> dict[str, Any]:
    """Return the config of an export."""
    return {"bucket_name": bucket, "region": "eu-central-1", "prefix": f"web/{number}/"}


def both_sides() -> tuple[Desired, Live]:
    """Return desired state and live state."""
    web = Address("project", "web")
    resources = {web: Resource(web, {"name": "Web", "timezone": "UTC"})}
    exports = []
    for number in range(EXPORTS):
        address = Address("batch_export", f"export-{number:05}")
        common = {"name": f"Export {number}", "interval": "hour", "paused": False}
        secrets = {
            "aws_access_key_id": SecretRef.of("env", "ID"),
            "aws_secret_access_key": SecretRef.of("env", "KEY"),
        }
        config = {**config_of(number, bucket="acme"), **secrets}
        resources[address] = Resource(
            address,
            {**common, "destination": {"type": "S3", "config": config}},
            parent=ParentRef(key="web"),
        )
        bucket = "acme" if number % DIFFERENT_EVERY else "other"
        body = {
            **common,
            "id": f"{number:08}",
            "team_id": 1,
            "sql_query": None,
            "last_updated_at": "2026-01-01T00:00:00Z",
            "destination": {"type": "S3", "config": config_of(number, bucket=bucket)},
        }
        exports.append(LiveObject("batch_export", body["id"], common["name"], body, parent_id="1"))
    project = LiveObject("project", "1", "Web", {"id": 1, "name": "Web", "timezone": "UTC"})
    live = Live({"project": (project,), "batch_export": tuple(exports)}, dialect=Dialect.INTERFACE)
    return Desired("benchmark", "https://example.com", "org", resources), live


def planner(settings: Settings) -> Result:
    """Plan, and compare a tenth of the pairs with DeepDiff."""
    desired, live = both_sides()
    context = PlanContext(datetime(2026, 6, 1, tzinfo=UTC), "benchmark")
    pairs = list(zip(desired.in_order(), live.of("batch_export"), strict=False))[: EXPORTS // 10]
    planned, compared = [], []
    gc.collect()
    gc.disable()
    try:
        for _ in range(settings.rounds):
            begun = time.process_time()
            plan = make_plan(desired, live, Policy(), all_kinds(), context=context)
            planned.append(time.process_time() - begun)
            begun = time.process_time()
            for resource, live_object in pairs:
                DeepDiff(dict(resource.spec), dict(live_object.body))
            compared.append((time.process_time() - begun) * EXPORTS / len(pairs))
    finally:
        gc.enable()
    assert len(plan.effective) == EXPORTS // DIFFERENT_EVERY
    return Result(
        f"planner alone: {EXPORTS:,} exports, {len(plan.effective):,} to update",
        ratios={"CPU ÷ DeepDiff": ratio_of(planned, compared)},
        values={"planner, CPU s": min(planned), "DeepDiff, CPU s": min(compared)},
    )
