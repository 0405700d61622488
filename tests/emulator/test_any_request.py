"""No valid request ends in an unexpected 500, and a refused one changes nothing."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx
import pytest

from reconciler.emulator.app import build
from reconciler.emulator.clock import Clock
from reconciler.emulator.dialects import DIALECTS as BY_NAME
from reconciler.emulator.seed import plant
from reconciler.emulator.store import Store
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.world import World
from reconciler.model.schemas import own_properties
from tests.conftest import LONG
from tests.emulator.conftest import SEED
from tests.emulator.facts import KEYS, S3
from tests.integration.test_every_value import ABSENT, values_of
from tests.security.odd import ODD, REMOVED
from tests.support import fields
from tests.support.emulator import DIALECTS

EXAMPLES = 1_000 if LONG else 8
"""How many sequences of requests each dialect answers."""
LENGTH = 20
NOW = datetime(2026, 10, 7, 10, 20, tzinfo=UTC)
NOBODY = "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0"
ERROR = {"type", "code", "detail", "attr"}
Call = tuple[str, str, dict[str, str], Any, int]
"""A method, a path with names to fill in, a query, a body, and which of several objects."""

_DATES = """
20260101 2026-W02-1 2026W021 2026-10-04 2026-10-05 2026-13-01 0001-01-01 9999-12-31
9000-01-01T00:00:00Z 2026-10-07T01 20261007T010000Z 2026-10-07T24:00:00Z 2026-10-07T09:00 2026-02-30
2026-10-04T00:00:00+00:00:30 0001-01-01T00:00:00+14:00
9999-12-31T23:59:59-14:00 9999-12-31T23:59:59.999999Z -7d -999999y -14M now
2026-10-07T01:00:00Z 2026-10-07T05:00:00Z 2026-10-06T01:00:00+02:00 ２０２６-01-01
"""
DATES = (*_DATES.split(), "", " ")
RANGES = (
    *(("2026-10-07T01:00:00Z", "2026-10-07T05:00:00Z"), ("2026-10-05", "2026-10-07")),
    *(("20261004", "2026-10-11"), ("2026-W40-7", "2026W417"), ("20261005", "2026-W41-3")),
)
ODDITIES = (
    *(*ODD, *DATES, "\0", "é\u202e", "😀", "\ud800", "ß" * 5_000, "%s{}", "1e999", "١٢"),
    *(2**63, 10**400, -0.0, 1e-9, float("nan"), float("inf"), 7.0, 24),
)
NO_OP = {"type": "NoOp", "config": {}}
WRITES = {
    "POST /projects/{project}/batch_exports/": "export",
    "PATCH {export}/": "change",
    "PUT {export}/": "export",
    "DELETE {export}/": "",
    "POST {export}/pause/": "",
    "POST {export}/unpause/": "unpause",
    "POST {export}/backfill/": "range",
    "POST {export}/backfills/": "range",
    "POST {export}/backfills/{backfill}/cancel/": "",
    "POST {export}/runs/{run}/cancel/": "",
    "POST run_test_step_new/": "test",
    "POST {export}/run_test_step/": "test",
    "PATCH /projects/{project}/": "settings",
    "PUT /projects/{project}/": "settings",
    "DELETE /projects/2/": "",
    "PATCH /projects/{project}/reset_token/": "",
    "POST /organizations/{organization}/projects/": "settings",
    "POST /projects/{project}/integrations/": "integration",
    "DELETE /projects/{project}/integrations/{integration}/": "",
    "POST /_emulator/clock": "clock",
}
"""The form of the body of each write."""
SECONDS = (11.5, 3_601.5, 90_001.5, 900_001.5, -7_200.5)


def _some(dice: Random, kind: str, **more: list[Any]) -> dict[str, Any]:
    """Return a few fields of a kind, with documented values."""
    nodes = own_properties(kind)
    values = {
        name: [value for value in values_of(name, node) if value != ABSENT]
        for name, node in nodes.items()
        if name != "destination"
    } | more
    return {name: dice.choice(values[name]) for name in dice.sample(sorted(values), 4)}


def _destination(dice: Random, dialect: str) -> dict[str, Any]:
    types = fields.BY_INTEGRATION if dialect == "2026" else fields.INLINE
    name = dice.choice(sorted(types))
    kinds = {item["kind"]: item["id"] for item in SEED["integrations"] if item["project"] == 1}
    integration = kinds.get(fields.INTEGRATIONS.get(name, ""))
    return {"type": name, "config": types[name], "integration": integration}


def _valid(dice: Random, dialect: str, form: str) -> Any:
    """Return a body as documented."""
    change = _some(
        *(dice, "batch_export"),
        interval=["hour", "day", "week", "every 5 minutes", "every 15 minutes"],
        hogql_query=[*fields.QUERIES, None],
        **{name: list(DATES) for name in ("last_paused_at", "start_at", "end_at")},
    )
    to = {"destination": dice.choice((NO_OP, _destination(dice, dialect)))}
    whole = {"name": "Lake", "interval": "hour", **to, **change}
    kind = dice.choice([*fields.INTEGRATIONS.values(), "github"])
    config = {"name": "a", "account_name": "a", "host": "h", "endpoint_url": "e"}
    moved = {"advance_seconds": dice.choice(SECONDS)}, {"set": dice.choice(DATES)}
    return {
        "export": whole,
        "test": {**whole, "step": dice.randint(-1, 5)},
        "change": {**change, **dice.choice((to, {}))},
        "unpause": {"backfill": dice.choice((True, False))},
        "range": dict(zip(("start_at", "end_at"), dice.choice(RANGES), strict=True)),
        "settings": _some(dice, "project", name=["Web", "New"]),
        "integration": {"kind": kind, "config": config},
        "clock": dice.choice(moved),
    }.get(form)


def _spoiled(dice: Random, value: Any) -> Any:
    """Return a copy of a value with an odd one at a random place."""
    root = [deepcopy(value)]
    holder: Any = root
    at: Any = 0
    while isinstance(holder[at], dict | list) and holder[at] and dice.random() < 0.8:
        holder = holder[at]
        at = dice.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    odd = dice.choice(ODDITIES)
    if odd is REMOVED:
        del holder[at]
    else:
        holder[at] = odd
    return root[0] if root else None


_READS = """
{export}/ {export}/runs/ {export}/runs/{run}/ {export}/logs/ {export}/runs/{run}/logs/
{export}/backfills/ {export}/backfills/{backfill}/ test/ test/?destination=S3
test/?destination=Snowflake test/?destination=HTTP /organizations/ /users/@me/
/projects/ /projects/{project}/ /projects/{project}/batch_exports/
/organizations/{organization}/ /organizations/{organization}/projects/
/organizations/{organization}/batch_exports/ /personal_api_keys/@current/
/projects/{project}/integrations/ /projects/{project}/integrations/{integration}/
/projects/{project}/activity_log/
"""
READS = tuple(_READS.split())
_PARAMETERS = """
limit offset cursor ordering after before start end status level level_filter search instance_id
page_size kind scope item_id user destination
"""
_WORDS = """
0 1 -1 100 501 1e3 created_at -data_interval_start start_at Completed INFO % ( true S3
bm90IGpzb24= WzEsMl0= WyJhZnRlciIsIngiLCJ5Il0= @current WyJhZnRlciIsbnVsbCxudWxsXQ==
"""


def _call(dice: Random, dialect: str) -> Call:
    which, query = dice.randrange(20), {}
    if dice.random() < 0.35:
        for name in dice.sample(_PARAMETERS.split(), dice.randrange(4)):
            query[name] = dice.choice((*_WORDS.split(), *DATES, "9" * 30, "\0", "%"))
        return "GET", dice.choice(READS), query, None, which
    often = [name for name in WRITES if "backfill" in name or name.startswith("POST /projects")]
    name = dice.choice([*WRITES, *often])
    body = _valid(dice, dialect, WRITES[name])
    if dice.random() < 0.6 and name != "POST /_emulator/clock":
        body = _spoiled(dice, body)
    method, path = name.split(" ")
    return method, path, query, body, which


class _Frozen(Clock):
    """Time that only the switchboard moves, but for a microsecond at each reading."""

    readings = 0

    def now(self) -> datetime:
        self.readings += 1
        return NOW + self.offset + timedelta(microseconds=self.readings)


def _seed(dialect: str) -> dict[str, Any]:
    """The seed with a past, and exports that differ in what a backfill or a run needs."""
    lake = {"name": "Lake", "destination": {"type": "NoOp", "config": {}}}
    s3 = {**S3, "max_file_size_mb": 5}
    destination = {"type": "S3", "config": {**s3, **KEYS}}
    if dialect == "2026":
        destination = {"type": "AwsS3", "config": s3}
    berlin = {"timezone": "Europe/Berlin", "offset_hour": 2}
    planted = [
        {**lake, "interval": "day", **(berlin if dialect == "2026" else {})},
        {**lake, "interval": "week"},
        {**lake, "destination": destination},
        {**lake, "paused": True, "last_paused_at": "2026-10-06T00:00:00Z"},
    ]
    seed = deepcopy(SEED)
    for project in seed["organizations"][0]["projects"]:
        project["batch_exports"] = planted
    return {**seed, "lived": "6h", "settings": {"auto_pause": False}}


class Served:
    """A service in this process."""

    def __init__(self, dialect: str) -> None:
        self.world = World(Store(), _Frozen(), BY_NAME[dialect])
        plant(self.world, _seed(dialect))
        app = build(self.world, lambda: None, throttle=Throttle())
        headers = {"Authorization": "Bearer phx_internal"}
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers
        )

    def path(self, template: str, which: int) -> str:
        """Return a path, which sometimes names what does not exist."""
        store = self.world.store
        names: dict[str, Any] = {
            "project": 1 + (which % 6 == 0),
            "organization": store.organizations()[0],
        }
        names["integration"] = [7, 3, 99][which % 3]
        exports = [export.id for export in store.exports([names["project"]])]
        names["export"] = exports[which // 2 % len(exports)] if exports and which < 18 else NOBODY
        runs = store.runs_created(names["export"], self.world.clock.now())
        names["run"] = runs[which % len(runs)]["id"] if runs else "x"
        backfills = store.backfills(names["export"], self.world.clock.now())
        names["backfill"] = backfills[which % len(backfills)]["id"] if backfills else "x"
        if template.startswith("/_emulator/"):
            return template
        if not template.startswith("/"):
            template = f"/projects/{{project}}/batch_exports/{template}"
        return f"/api{template}".format(**names)

    async def send(self, call: Call) -> httpx.Response:
        method, template, query, body, which = call
        headers = {} if body is None else {"Content-Type": "application/json"}
        return await self.http.request(
            method,
            self.path(template, which),
            params=query or None,
            content=b"" if body is None else json.dumps(body).encode(),
            headers=headers,
        )

    async def settled(self) -> bytes:
        """Return everything that is stored once what is due has happened."""
        await self.http.post("/_emulator/clock", json={"advance_seconds": 0})
        return self.world.store.snapshot().serialize()


def _check_answer(call: Call, answer: httpx.Response, *, same: bool) -> None:
    """Check the form of an answer, and that a refusal left what was stored the `same`."""
    method, template, *_ = call
    context = (call, answer.status_code, answer.text)
    if answer.is_success:
        assert answer.status_code == 204 or isinstance(answer.json(), dict), context
        return
    # A 2025 server stumbles while it deletes: what it deleted until then is gone (4.3).
    stumbled = (method, answer.status_code) == ("DELETE", 500)
    assert same or stumbled, context
    if template.startswith("test/") and not answer.content:
        return
    error = answer.json()
    if template.startswith("/_emulator/"):
        assert set(error) == {"error"}, context
        return
    assert set(error) == ERROR, context
    assert isinstance(error["detail"], str), context
    assert error["attr"] is None or isinstance(error["attr"], str), context


@pytest.mark.parametrize("name", DIALECTS)
def test_no_request_fails_unexpectedly_or_half(name: str) -> None:
    """I17: among others, dates such as `20260101` in a backfill."""

    async def run(calls: list[Call]) -> None:
        served = Served(name)
        before = await served.settled()
        for call in calls:
            answer = await served.send(call)
            requests = (await served.http.get("/_emulator/requests")).json()["requests"]
            assert not requests or requests[-1]["error"] is None, (call, requests[-1]["error"])
            after = await served.settled()
            _check_answer(call, answer, same=before == after)
            before = after
        assert (await served.http.get("/_emulator/state")).is_success

    for seed in range(EXAMPLES):
        dice = Random(seed)  # noqa: S311
        asyncio.run(run([_call(dice, name) for _ in range(LENGTH)]))
