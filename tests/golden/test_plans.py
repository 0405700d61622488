"""A case is a folder named for what it shows; adding one needs no Python.

<case>/workspace/     reconciler.yaml and resource files
<case>/base/          the same at the git base, if there is one
<case>/live.yaml      what the API answers: projects, batch_exports, dialect
<case>/options.yaml   what the caller asked for: targets, rotate, allow_replace, …
<case>/expected/      plan.txt, plan.md and plan.json, or error.txt
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.config import load
from reconciler.errors import AmbiguousIdentity
from reconciler.kinds import all_kinds
from reconciler.model.live import Dialect, Live, LiveObject
from reconciler.model.plan import Plan, Selection
from reconciler.planning.planfile import decode, encode
from reconciler.planning.planner import Base, Circumstances, PlanOptions, make_plan
from reconciler.planning.undo import Undone, undo_plan
from reconciler.render.formats.markdown import plan_as_markdown
from reconciler.render.options import RenderOptions
from reconciler.render.plan.text import plan_as_text
from reconciler.render.progress import error_as_text
from tests.support.worlds import NOW

HERE = Path(__file__).parent
CASES = sorted(path for path in (HERE / "plans").iterdir() if path.is_dir())
KINDS = all_kinds()
FORMATS: dict[str, Callable[[Plan], str]] = {
    "plan.txt": lambda plan: plan_as_text(plan, RenderOptions(show_unmanaged=True)),
    "plan.md": plan_as_markdown,
    "plan.json": lambda plan: encode(plan).decode(),
}
_EXPORT = {
    "team_id": 1,
    "model": "events",
    "interval": "hour",
    "paused": False,
    "created_at": "2026-01-01T00:00:00Z",
    "last_updated_at": "2026-05-01T00:00:00Z",
    "latest_runs": [],
    "schema": None,
}
_OF_DIALECT: dict[str, dict[str, Any]] = {
    "interface": {"sql_query": None},
    "2025": {"filters": None},
    "2026": {
        "timezone": "UTC",
        "offset_day": None,
        "offset_hour": None,
        "hogql_query": None,
        "incremental_mode": "APPEND",
    },
}
_ENVIRON = {
    "RECONCILER_BASE_URL": "https://eu.example.com",
    "RECONCILER_ORGANIZATION": "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0",
    "RECONCILER_API_KEY": "unused",
}


def _yaml(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {} if path.exists() else {}


def _live(case: Path) -> Live:
    told = _yaml(case / "live.yaml")
    dialect = str(told.get("dialect", "interface"))
    projects = [
        LiveObject("project", str(each["id"]), each["name"], {"timezone": "UTC", **each})
        for each in told.get("projects", [{"id": 1, "name": "Web"}])
    ]
    exports = []
    for number, each in enumerate(told.get("batch_exports", [])):
        body = {"id": f"e{number}", **_EXPORT, **_OF_DIALECT[dialect], **each}
        exports.append(
            LiveObject(
                "batch_export", body["id"], body["name"], body, parent_id=str(body["team_id"])
            )
        )
    found = {"project": tuple(projects), "batch_export": tuple(exports)}
    return Live(found, dialect=Dialect(dialect) if exports else None)


def _plan(case: Path) -> Plan:
    options = _yaml(case / "options.yaml")
    loaded = load(case / "workspace", kinds=KINDS, environment=None, environ=_ENVIRON)
    base = None
    if (case / "base").is_dir():
        before = load(case / "base", kinds=KINDS, environment=None, environ=_ENVIRON)
        base = Base(before.desired, "c0ffee0000000000000000000000000000000000")
    given = Circumstances(
        now=NOW,
        tool_version="test",
        base=base,
        options=PlanOptions(
            rotate=tuple(options.get("rotate", ())),
            allow_replace=options.get("allow_replace", False),
            selection=Selection(
                targets=tuple(options.get("targets", ())),
                excludes=tuple(options.get("excludes", ())),
                kinds=tuple(options.get("kinds", ())),
                parents=tuple(options.get("parents", ())),
            ),
        ),
    )
    live = _live(case)
    if "undo" not in options:
        return make_plan(loaded.desired, live, loaded.policy, KINDS, given=given)
    former = _live(case / options["undo"])
    made = make_plan(loaded.desired, former, loaded.policy, KINDS, given=given)
    return undo_plan(Undone(made), loaded.desired, live, loaded.policy, KINDS, given=given)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plan_reads_as_expected(case: Path, golden: Callable[[Path, str], None]) -> None:
    try:
        plan = _plan(case)
    except AmbiguousIdentity as error:
        golden(case / "expected" / "error.txt", error_as_text(error))
        return
    saved = decode(encode(plan))
    assert saved == plan
    for name, drawn in FORMATS.items():
        golden(case / "expected" / name, drawn(saved))


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 80
