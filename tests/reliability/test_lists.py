"""Lists and objects that are not what they say: nothing is created twice."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.accounting import (
    differences,
    duplicates,
    normal,
    unasked_deletes,
)
from tests.reliability.runs import applier, end_state
from tests.reliability.scenarios import Scenario, many_exports
from tests.reliability.service import running_service
from tests.support.emulator import DIALECTS
from tests.support.limits import LONG
from tests.support.virtual_loop import run_virtually

BODIES: Mapping[str, Mapping[str, Any]] = {
    "empty-body": {"fault": "body", "text": ""},
    "null": {"fault": "body", "value": None},
    "list": {"fault": "body", "value": []},
    "object": {"fault": "body", "value": {}},
    "html": {"fault": "html", "status": 200},
}
LIES: Mapping[str, Mapping[str, Any]] = {
    "cap-50": {"fault": "page", "cap": 50},
    "cap-15": {"fault": "page", "cap": 15},
    "count-missing": {"fault": "page", "count": "omit"},
    "count-0": {"fault": "page", "count": 0},
    "count-negative": {"fault": "page", "count": -1},
    "count-low": {"fault": "page", "count": "-1"},
    "count-high": {"fault": "page", "count": "+1"},
    "count-text": {"fault": "page", "count": "many"},
    "count-bool": {"fault": "page", "count": True},
    "count-huge": {"fault": "page", "count": 10_000_000},
    "count-beyond-numbers": {"fault": "page", "count": 1e308},
    "last-missing": {"fault": "page", "drop": 1},
    "repeated-item": {"fault": "page", "repeat": 1},
    "deleted-between-pages": {"fault": "stale", "change": "delete"},
    "created-between-pages": {"fault": "stale", "change": "create"},
    "no-ids": {"fault": "body", "merge": {"results": [{"name": "E0"}]}},
    "no-next": {"fault": "body", "merge": {"next": None}},
    "other-host": {"fault": "body", "merge": {"next": "https://elsewhere.example/?offset=1"}},
    "results-null": {"fault": "body", "merge": {"results": None}},
    "results-of-text": {"fault": "body", "merge": {"results": ["E0"]}},
    **BODIES,
    "behind": {"fault": "lag", "seconds": 2},
}
ODD: Mapping[str, Mapping[str, Any]] = {
    **BODIES,
    "other-id": {"fault": "other_id"},
    "404": {"fault": "error", "status": 404},
    "truncated": {"fault": "truncate"},
}
ALL = DIALECTS if LONG else DIALECTS[:1]
TIMES = {"always": 1_000, "once": 1} if LONG else {"always": 1_000}


@cache
def end_of(dialect: str, exports: int) -> dict[str, Any]:
    """Return the state after a run without lies."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = many_exports(dialect, exports)
        return run_virtually(end_state(scenario, scenario.written(Path(folder))))


def check(dialect: str, exports: int, folder: Path, *rules: Mapping[str, Any]) -> None:
    """Apply under faults, then without, and compare with a run without faults."""
    end = end_of(dialect, exports)
    run_virtually(lied_to(many_exports(dialect, exports), end, folder, *rules))


async def lied_to(
    scenario: Scenario, end: dict[str, Any], folder: Path, *rules: Mapping[str, Any]
) -> None:
    async with running_service(scenario.seed, scenario.dialect) as service:
        before = await service.state()
        user = await applier(service, scenario.written(folder))
        await service.fail(*rules)
        first = await user.apply()
        assert first.code in (0, 1, 3), first
        middle = await service.state()
        assert not duplicates(middle), first
        await service.fail()
        await asyncio.sleep(60)
        again = await user.apply()
        assert again.code == 0, again
        after = await service.state()
        assert not [name for name in duplicates(after) if "/" in name], first
        # In these another client deletes and creates.
        if not any(rule["fault"] == "stale" for rule in rules):
            assert not unasked_deletes(scenario, before, after), first
            assert not differences(end, normal(after)), first


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("kind", ["batch_exports", "projects"] if LONG else ["batch_exports"])
@pytest.mark.parametrize("lie", LIES)
def test_f2_a_lying_list_duplicates_nothing(
    lie: str, kind: str, times: int, dialect: str, tmp_path: Path
) -> None:
    rule = {"match": {"method": "GET", "path": f"*/{kind}/", "times": times}, **LIES[lie]}
    check(dialect, 105, tmp_path, rule)


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("path", ["*/projects/?*/", "*/batch_exports/?*/"])
@pytest.mark.parametrize("odd", ODD)
def test_f1_an_odd_answer_to_a_detail_duplicates_nothing(
    odd: str, path: str, times: int, dialect: str, tmp_path: Path
) -> None:
    # A list of exports is below the path of its project, too.
    detail = {"match": {"method": "GET", "path": path, "times": times}, **ODD[odd]}
    lists = {"match": {"path": "*/batch_exports/"}, "fault": "latency", "seconds": 0}
    rules = [lists, detail] if path.startswith("*/projects") else [detail]
    check(dialect, 6, tmp_path, *rules)
