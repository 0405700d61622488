"""Compare plans with expected texts. A case is a folder; adding one needs no Python.

<case>/workspace/     resource files, and what reconciler.yaml has besides `_WORKSPACE`;
                      exports have its defaults, and a case without projects has `web`
<case>/base/          the same at the applied commit, if there is one
<case>/live.yaml      live state: projects, batch_exports, integrations by project, dialect;
                      exports have `_EXPORT`, and a case without projects has Web
<case>/options.yaml   the options of the command: targets, rotate, allow_replace, …;
                      toggle: the action of `pause` or `unpause` for every export;
                      base: workspace if that was applied
<case>/expected/      plan.txt or error.txt

Some cases have a plan.json, at least one for each action, a plan.md, or the files of other
formats: they are compared where they exist. A plan.json has values that fit in a line on one. Add a
plan.md only for what Markdown writes in its own way. Every plan is encoded and decoded before it is
compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from msgspec import convert
from msgspec.structs import replace

from reconciler.commands.pause.toggling import Toggling
from reconciler.files.loading import Loaded, load
from reconciler.model.decoding import decode
from reconciler.model.kind import Action, Dialect, Integration, Integrations
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan, encode
from reconciler.model.settings import PlanOptions, Selection
from reconciler.model.values import Address
from reconciler.planning.make import make_plan
from reconciler.planning.match import match
from reconciler.planning.select import PlanContext, select
from reconciler.render.ci_reports import plan_as_github, plan_as_gitlab
from reconciler.render.html import plan_as_html
from reconciler.render.options import RenderOptions
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from tests.support.worlds import ENVIRON, KINDS, NOW, inventory_of

HERE = Path(__file__).parent
CASES = sorted(path for path in (HERE / "plans").iterdir() if path.is_dir())
OTHERS: dict[str, Callable[[Plan], str]] = {
    "plan.md": plan_as_markdown,
    "plan.html": lambda plan: plan_as_html(plan).partition("<body>")[2].partition("<script>")[0],
    "plan.github": lambda plan: plan_as_github(plan, RenderOptions(root="infra")),
    "plan.gitlab.json": plan_as_gitlab,
}
_SECRETS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "BIGQUERY_EMAIL", "BIGQUERY_KEY"),
    *("BIGQUERY_KEY_ID", "BIGQUERY_TOKEN_URI", "HOOK", "ID", "K", "KEY", "OLD", "P", "PG", "U"),
)
_COMMON = "{project: web, interval: hour, destination: {type: NoOp, config: {}}}"
_WORKSPACE = {
    "version": "1",
    "secrets": f"[{', '.join(_SECRETS)}]",
    "defaults": f"{{batch_export: {_COMMON}}}",
}
_PROJECTS = "projects: {web: {name: Web}}\n"
_EXPORT = {
    "team_id": 1,
    "model": "events",
    "interval": "hour",
    "destination": {"type": "NoOp", "config": {}},
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


def _yaml(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {} if path.exists() else {}


def _live(file: Path) -> Live:
    given = _yaml(file)
    dialect = str(given.get("dialect", "interface"))
    projects = [
        LiveObject("project", str(project["id"]), project["name"], {"timezone": "UTC", **project})
        for project in given.get("projects", [{"id": 1, "name": "Web"}])
    ]
    exports = []
    for number, export in enumerate(given.get("batch_exports", [])):
        body = {"id": f"e{number}", **_EXPORT, **_OF_DIALECT[dialect], **export}
        exports.append(
            LiveObject(
                "batch_export", body["id"], body["name"], body, parent_id=str(body["team_id"])
            )
        )
    objects = {"project": tuple(projects), "batch_export": tuple(exports)}
    tables = {
        str(project): Integrations(tuple(convert(items, list[Integration])))
        for project, items in given.get("integrations", {}).items()
    }
    known = Dialect(dialect) if exports or tables else None
    return Live(objects, dialect=known, integrations=tables)


def _load(folder: Path) -> Loaded:
    with TemporaryDirectory() as name:
        workspace = copytree(folder, Path(name), dirs_exist_ok=True)
        texts = [path.read_text(encoding="utf-8") for path in workspace.rglob("*.yaml")]
        if not any("projects:" in text for text in texts):
            (workspace / "projects.yaml").write_text(_PROJECTS, encoding="utf-8")
        settings = workspace / "reconciler.yaml"
        own = settings.read_text(encoding="utf-8") if settings.exists() else ""
        common = (
            f"{name}: {value}\n" for name, value in _WORKSPACE.items() if f"{name}:" not in own
        )
        settings.write_text("".join([own, *common]), encoding="utf-8")
        return load(workspace, environment=None, environ=ENVIRON)


def plan_of(case: Path) -> Plan:
    """Plan a case."""
    options = _yaml(case / "options.yaml")
    loaded = _load(case / "workspace")
    base, applied = None, case / options.get("base", "base")
    if applied.is_dir():
        before = _load(applied)
        base = inventory_of(before.desired, _live(case / "live.yaml"), loaded.desired)
    context = PlanContext(
        now=NOW,
        tool_version="test",
        inventory=base,
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
    live = _live(case / "live.yaml")
    if "toggle" in options:
        matches = match(loaded.desired, live, policy=loaded.policy, kinds=KINDS).matches
        addresses = {item.live.id: address for address, item in matches.items() if item.live}
        objects = {
            addresses.get(item.id, Address.of_unmanaged(item.kind, item.id)): item
            for item in live.of("batch_export")
        }
        toggling = Toggling(objects, Action(options["toggle"]), loaded.desired)
        return toggling.plan(live, loaded.policy, context)
    return make_plan(select(loaded.desired, live, loaded.policy, KINDS, context=context))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plan_reads_as_expected(case: Path, golden: Callable[[Path, str], None]) -> None:
    expected = case / "expected"
    plan = plan_of(case)
    encoded = encode(plan)
    saved = decode(encoded)
    assert saved == replace(plan, changes=plan.effective)
    golden(expected / "plan.txt", plan_as_text(saved, RenderOptions(show_unmanaged=True)))
    for name, render in OTHERS.items():
        if (expected / name).exists():
            golden(expected / name, render(saved))
    if (expected / "plan.json").exists():
        value = json.loads(encoded)
        assert encoded.decode() == json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        golden(expected / "plan.json", _dense(value) + "\n")


def _dense(value: Any, margin: str = "") -> str:
    """Return JSON in which every value that fits in a line has one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(margin) + len(line) <= 100 or not isinstance(value, (dict, list)):
        return line
    inner = f"{margin}  "
    if isinstance(value, dict):
        begin, end = "{", "}"
        parts = [f"{json.dumps(name)}: {_dense(item, inner)}" for name, item in value.items()]
    else:
        begin, end = "[", "]"
        parts = [_dense(item, inner) for item in value]
    body = f",\n{inner}".join(parts)
    return f"{begin}\n{inner}{body}\n{margin}{end}"
