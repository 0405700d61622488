"""Several runs at once: every order of their requests, by virtual latencies."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import httpx
from hypothesis import given
from hypothesis import strategies as st

from reconciler.applying import execute
from reconciler.model.event import Report
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired
from reconciler.service.live import Depth, read_live
from reconciler.service.transport import Transport
from tests.support.transport import mocked
from tests.support.virtual_loop import LoopClock, run_virtually
from tests.support.worlds import KINDS, NOW, desired_of, export, planned, project

NO_OP = {"type": "NoOp", "config": {}}
PROJECT = {"id": 1, "name": "Web", "timezone": "UTC"}
EXPORTS = "/api/projects/1/batch_exports/"


@dataclass
class PureService:
    """Exports of one project. Requests take random times, and lists are `lag` seconds behind.

    `losses` is the probability that the response to a create is lost.
    """

    random: Random
    slowest: float
    lag: float = 0.0
    losses: float = 0.0
    exports: dict[str, dict[str, Any]] = field(default_factory=dict)
    created: dict[str, float] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)
    last: datetime = NOW

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(self.random.uniform(0, self.slowest))
        response = self._response(request)
        await asyncio.sleep(self.random.uniform(0, self.slowest))
        if request.method == "POST" and self.random.random() < self.losses:
            raise httpx.ReadError("lost")
        return response

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _at(self, moment: float) -> list[dict[str, Any]]:
        """Return the exports of a moment."""
        return [
            body
            for live_id, body in self.exports.items()
            if self.created[live_id] <= moment < self.deleted.get(live_id, float("inf"))
        ]

    def _response(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        live_id = path.rstrip("/").rpartition("/")[2]
        match request.method:
            case "GET" if path.endswith("/projects/1/"):
                return httpx.Response(200, json=PROJECT)
            case "GET" if path.endswith("s/"):
                shown = self._at(self._now() - self.lag)
                return _page(shown if "batch_exports" in path else [PROJECT])
            case "POST":
                return self._create(json.loads(request.content))
            case "DELETE" if live_id in self.exports and live_id not in self.deleted:
                self.deleted[live_id] = self._now()
                return httpx.Response(204)
            case "GET" if live_id in self.exports and live_id not in self.deleted:
                return httpx.Response(200, json=self.exports[live_id])
        error = {"type": "x", "code": "not_found", "detail": "Not found.", "attr": None}
        return httpx.Response(404, json=error)

    def _create(self, body: dict[str, Any]) -> httpx.Response:
        live_id = str(UUID(int=self.random.getrandbits(128)))
        # Two creates never have the same time: a list between them shows the older one only.
        moment = max(NOW + timedelta(seconds=self._now()), self.last + timedelta(microseconds=1))
        self.last = moment
        self.created[live_id] = self._now()
        self.exports[live_id] = {
            **body,
            "id": live_id,
            "team_id": 1,
            "sql_query": None,
            "paused": False,
            "latest_runs": [],
            "created_at": moment.isoformat(),
        }
        return httpx.Response(201, json=self.exports[live_id])


def _page(items: list[dict[str, Any]]) -> httpx.Response:
    return httpx.Response(200, json={"count": len(items), "next": None, "results": items})


async def _planned(service: PureService, desired: Desired) -> Plan:
    async with mocked(service, clock=LoopClock(), retry_for=30) as transport:
        return planned(desired, await _read(transport, desired))


async def _read(transport: Transport, desired: Desired) -> Live:
    return await read_live(transport, desired, kinds=KINDS, depth=Depth(lambda _: True))


async def _applied(service: PureService, desired: Desired, prompt: float) -> Report:
    """Read, plan, wait for approval, apply."""
    async with mocked(service, clock=LoopClock(), retry_for=30) as transport:
        live = await _read(transport, desired)
        plan = planned(desired, live)
        await asyncio.sleep(prompt)
        return await execute(plan, transport, listen=lambda _: None, live=live)


async def _race(service: PureService, desired: Desired, prompts: list[float]) -> list[Report]:
    running = (_applied(service, desired, prompt) for prompt in prompts)
    reports = await asyncio.gather(*running)
    # What a stale read of another run showed is over.
    await asyncio.sleep(service.lag + 1)
    return list(reports)


def _desired(count: int) -> Desired:
    return desired_of(
        project(), *(export(f"e{number}", destination=NO_OP) for number in range(count))
    )


_randoms = st.randoms(use_true_random=True)
_losses = st.sampled_from([0.0, 0.3])
_prompts = st.lists(st.floats(0, 12), min_size=2, max_size=3)


@given(_randoms, st.floats(0, 4), st.floats(0, 8), _losses, _prompts, st.integers(1, 4))
def test_f6_no_order_of_requests_deletes_anything_and_a_plan_names_what_exists_twice(
    random: Random, slowest: float, lag: float, losses: float, prompts: list[float], count: int
) -> None:
    async def run() -> None:
        service = PureService(random, slowest, lag, losses)
        await _race(service, _desired(count), prompts)
        assert not service.deleted
        ids = defaultdict(list)
        for live_id, body in service.exports.items():
            ids[body["name"]].append(live_id)
        assert set(ids) == {f"E{number}" for number in range(count)}
        twice = [item for items in ids.values() if len(items) > 1 for item in items]
        plan = await _planned(service, _desired(count))
        assert {item.address.key for r in plan.refusals for item in r.objects} == {
            f"id:{item}" for item in twice
        }

    run_virtually(run())
