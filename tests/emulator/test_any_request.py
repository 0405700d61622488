"""No valid request ends in an unexpected 500, and a refused one changes nothing."""

from __future__ import annotations

import asyncio
import json
import string
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import httpx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

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
from tests.support import fields
from tests.support.emulator import DIALECTS

EXAMPLES = 1_000 if LONG else 6
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
_dates = st.sampled_from(DATES) | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
_texts = st.sampled_from(
    ["", " ", "\0", "é\u202e", "😀", "\ud800", "ß" * 5_000, "%s{}", "true", "1e999", "١٢"]
) | st.text(max_size=9)
_numbers = st.sampled_from(
    [0, -1, 1, 7, 23, 24, 2**31, 2**53, 2**63, 10**30, 10**400, 0.1, -0.0, 1e308, 1e-9, 0.005]
) | st.sampled_from([float("nan"), float("inf"), 7.0])
_json = st.recursive(
    st.none() | st.booleans() | _numbers | _texts | _dates,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)


def _values(stages: dict[str, list[Any]], **more: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Fields with documented values, some of them with any JSON instead, or missing."""
    known = {name: st.sampled_from(values) for name, values in {**stages, **more}.items()}
    odd = st.dictionaries(st.sampled_from(sorted(known)) | _texts, _json, max_size=2)
    few = st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True)
    some = few.flatmap(lambda names: st.fixed_dictionaries({name: known[name] for name in names}))
    return st.builds(lambda valid, wrong: {**valid, **wrong}, some, st.just({}) | odd)


def _one(config: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [value] for name, value in config.items()}


def _destination(dialect: str) -> st.SearchStrategy[Any]:
    types = fields.BY_INTEGRATION if dialect == "2026" else fields.INLINE
    kinds = {item["kind"]: item["id"] for item in SEED["integrations"] if item["project"] == 1}

    def of(name: str, config: dict[str, Any], odd: dict[str, Any]) -> dict[str, Any]:
        whole = {**types[name], **config}
        integration = kinds.get(fields.INTEGRATIONS.get(name, ""))
        return {"type": name, "config": whole, "integration": integration, **odd}

    odd = st.dictionaries(
        st.sampled_from(["type", "config", "integration", "integration_id", "more"]), _json
    )
    valid = st.sampled_from(sorted(types)).flatmap(
        lambda name: st.builds(
            of,
            st.just(name),
            _values(_one(types[name]), max_file_size_mb=["9", 6]),
            st.just({}) | odd,
        )
    )
    return st.one_of(valid, valid, valid, _json)


def _export(dialect: str) -> st.SearchStrategy[dict[str, Any]]:
    own = {
        "name": ["Lake", "Pond"],
        "interval": ["hour", "day", "week", "every 5 minutes", "every 15 minutes"],
        "timezone": ["UTC", "Europe/Berlin", "Pacific/Apia", None],
        "offset_day": [0, 3, None],
        "offset_hour": [0, 2, 23, None],
        "model": ["events", "persons", "sessions", "hogql", None, ""],
        "hogql_query": [*fields.QUERIES, None],
        "sql_query": [*fields.QUERIES, None],
        "filters": [[{"type": "event", "key": "a"}], [], None],
        "primary_key": [["n"], None],
        "incremental_mode": ["APPEND", "MERGE"],
        "last_paused_at": list(DATES),
        "start_at": list(DATES),
        "end_at": list(DATES),
    }
    more = _values({"paused": [True, False]}, **own)
    return st.builds(
        lambda destination, rest: {**destination, **rest},
        st.just({}) | st.fixed_dictionaries({"destination": _destination(dialect)}),
        more,
    )


def _new(dialect: str) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies of creates, most of them complete."""
    no_op = {"type": "NoOp", "config": {}}
    return _export(dialect).map(
        lambda body: {"name": "Lake", "interval": "hour", "destination": no_op, **body}
    )


def _bodies(dialect: str) -> dict[str, st.SearchStrategy[Any]]:
    """The bodies of writes, by the method and the end of the path."""
    dates = st.none() | _dates | _json
    settings = {
        name: [value for value in values_of(name, node) if value != ABSENT]
        for name, node in own_properties("project").items()
    }
    settings["name"] = ["Web", "New"]
    accounts = {"name": ["a", "b"], "account_name": ["a"], "host": ["h"], "endpoint_url": ["e"]}
    kind = st.sampled_from([*fields.INTEGRATIONS.values(), "github"]) | _json
    step = st.fixed_dictionaries({"step": st.integers(-1, 5) | _json})
    test = st.builds(lambda body, more: {**body, **more}, _new(dialect), st.just({}) | step)
    ranges = st.sampled_from(RANGES) | st.tuples(dates, dates)
    bounds = ranges.map(lambda dates: dict(zip(("start_at", "end_at"), dates, strict=True)))
    return {
        "POST /projects/{project}/batch_exports/": _new(dialect),
        "PATCH {export}/": _export(dialect),
        "PUT {export}/": _new(dialect),
        "DELETE {export}/": st.none(),
        "POST {export}/pause/": st.none() | _json,
        "POST {export}/unpause/": st.fixed_dictionaries({}, optional={"backfill": _json}),
        "POST {export}/backfill/": bounds,
        "POST {export}/backfills/": bounds,
        "POST {export}/backfills/{backfill}/cancel/": st.none(),
        "POST {export}/runs/{run}/cancel/": st.none(),
        "POST run_test_step_new/": test,
        "POST {export}/run_test_step/": test,
        "PATCH /projects/{project}/": _values(settings),
        "PUT /projects/{project}/": _values(settings),
        "DELETE /projects/2/": st.none(),
        "PATCH /projects/{project}/reset_token/": st.none(),
        "POST /organizations/{organization}/projects/": _values(settings),
        "POST /projects/{project}/integrations/": st.builds(
            lambda kind, config: {"kind": kind, "config": config}, kind, _values(accounts) | _json
        ),
        "DELETE /projects/{project}/integrations/{integration}/": st.none(),
    }


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
_LISTS = (
    "runs/",
    "logs/",
    "backfills/",
    "exports/",
    "projects/",
    "integrations/",
    "_log/",
    "test/",
)
_PARAMETERS = """
limit offset cursor ordering after before start end status level level_filter search instance_id
page_size kind scope item_id user destination
"""
_WORDS = """
0 1 -1 100 501 1e3 created_at -data_interval_start start_at Completed INFO % ( true S3
bm90IGpzb24= WzEsMl0= WyJhZnRlciIsIngiLCJ5Il0= @current WyJhZnRlciIsbnVsbCxudWxsXQ==
"""
_words = st.sampled_from([*_WORDS.split(), "9" * 30])


def _calls(dialect: str) -> st.SearchStrategy[Call]:
    bodies = _bodies(dialect)
    query = st.dictionaries(
        st.sampled_from(_PARAMETERS.split()),
        _words | _dates | st.text(string.printable, max_size=5),
        max_size=3,
    )
    which = st.integers(0, 19)
    writes = [
        st.tuples(*map(st.just, name.split(" ")), st.just({}), body, which)
        for name, body in bodies.items()
    ]
    reads = st.tuples(st.just("GET"), st.sampled_from(READS), query, st.none(), which)
    clock = st.builds(
        lambda seconds: {"advance_seconds": seconds},
        st.sampled_from([11.5, 3_601.5, 90_001.5, 900_001.5, -7_200.5]),
    ) | st.builds(lambda moment: {"set": moment}, st.sampled_from(DATES))
    moved = st.tuples(st.just("POST"), st.just("/_emulator/clock"), st.just({}), clock, which)
    often = [write for write, name in zip(writes, bodies, strict=True) if "backfill" in name]
    return st.one_of(*[reads] * 12, *writes, *writes[:3], *often, moved)


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

    # Not made smaller: each failure names its request.
    @settings(max_examples=EXAMPLES, phases=[Phase.generate])
    @given(calls=st.lists(_calls(name), min_size=LENGTH, max_size=LENGTH))
    def check(calls: list[Call]) -> None:
        asyncio.run(run(calls))

    check()


@pytest.mark.parametrize("name", DIALECTS)
def test_no_value_of_a_query_makes_the_server_fail(name: str) -> None:
    """Only a rule lets it fail (service.md, 5)."""
    parameters = f"{_PARAMETERS} scopes destination".split()

    async def run() -> list[Any]:
        served = Served(name)
        lists = [path for path in READS if path.endswith(_LISTS)]
        for path, query, value in product(lists, parameters, ("-1", "x", "\0", "9" * 30)):
            await served.send(("GET", path, {query: value}, None, 2))
        requests = (await served.http.get("/_emulator/requests")).json()["requests"]
        return [request for request in requests if request["error"]]

    assert asyncio.run(run()) == []
