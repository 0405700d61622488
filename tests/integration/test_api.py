"""The Python API: the example of docs/api.md, typed results, and errors."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler import api
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.operations.projects import ProjectDetails
from tests.conftest import ROOT
from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

EXAMPLE = ROOT / "examples/api.py"
KNOWN = {"Any", "Callable", "Coroutine", "Path", "Sequence", "None", "False", "True"}
DOCS = (ROOT / "docs/api.md").read_text(encoding="utf-8")


def workspace(folder: Path, emulator: RunningEmulator, **fields: Any) -> api.Workspace:
    export = {"name": "Lake", "interval": "hour", "project": {"id": 1}}
    export |= {"destination": {"type": "NoOp", "config": {}}, **fields}
    files = {
        "reconciler.yaml": "version: 1\n",
        "a.yaml": json.dumps({"batch_exports": {"lake": export}}),
    }
    return api.Workspace(write(folder, files), environ=emulator.environ())


def at(moment: str, given: api.Workspace) -> api.Workspace:
    """Return the workspace at another time."""
    now = datetime.fromisoformat(moment)
    return api.Workspace(given.folder, environ=given.environ, now=lambda: now)


def test_the_example_applies_and_closes_gaps(
    emulator: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = datetime.fromisoformat(emulator.admin("GET", "clock")["now"])
    emulator.admin("POST", "clock", {"set": (now - timedelta(hours=6)).isoformat()})
    rule = {"match": {"nth": 2}, "status": "Failed", "error": "no access"}
    emulator.admin("PUT", "outcomes", [rule, {"status": "Completed"}])
    given = workspace(tmp_path, emulator)
    for name, value in emulator.environ().items():
        monkeypatch.setenv(name, value)
    main = runpy.run_path(str(EXAMPLE))["main"]
    assert main([str(given.folder)]) == 0
    assert capsys.readouterr().out.startswith(
        "changes: 1\nverified: True\nbatch_export.lake Lake: "
    )
    emulator.advance(hours=6)
    assert main([str(given.folder)]) == 0
    assert capsys.readouterr().out.endswith("batch_export.lake: started backfills: 1\n")
    emulator.advance(minutes=10)
    assert main([str(given.folder)]) == 0
    assert capsys.readouterr().out == "changes: 0\nbatch_export.lake Lake: ok\n"
    assert main([str(tmp_path / "missing")]) == 1
    assert "error: " in capsys.readouterr().err


def test_the_example_is_the_one_of_the_page() -> None:
    _, _, rest = DOCS.partition("```python\n" + EXAMPLE.read_text(encoding="utf-8")[:20])
    assert rest
    blocks = DOCS.split("```python\n")[1:]
    assert EXAMPLE.read_text(encoding="utf-8") in [block.partition("```")[0] for block in blocks]


def test_every_function_is_documented() -> None:
    for name in api.__all__:
        assert re.search(rf"`{name}|-> {name}\b|\b{name}\]", DOCS), name
        assert inspect.getdoc(getattr(api, name)) or name == "Event"
        if inspect.iscoroutinefunction(getattr(api, name)):
            assert "Raises" in (inspect.getdoc(getattr(api, name)) or ""), name


def signatures() -> str:
    """Return the signatures of the functions, as docs/api.md has them."""
    lines = []
    for name in api.__all__:
        value = getattr(api, name)
        if inspect.isfunction(value):
            prefix = "async def" if inspect.iscoroutinefunction(value) else "def"
            text = f"{prefix} {name}{inspect.signature(value)}: ..."
            text = text.replace("''", '""')
            lines.append(re.sub(r"'|~|reconciler\.api\.\w+\.|datetime\.(?=timedelta)", "", text))
    source = "\n".join(lines) + "\n"
    words = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=100", "-"]
    return subprocess.run(
        words, input=source, capture_output=True, text=True, check=True, timeout=TIMEOUT
    ).stdout.replace("\n\n\n", "\n")


def test_ecosystem_7_the_page_has_the_signatures() -> None:
    assert f"```python\n{signatures()}```" in DOCS


def test_ecosystem_7_classes_that_functions_take_and_return_are_exported() -> None:
    for name in api.__all__:
        value = getattr(api, name)
        if inspect.isfunction(value):
            text = str(inspect.signature(value))
            classes = set(re.findall(r"\b[A-Z]\w+", text)) - KNOWN
            assert classes <= set(api.__all__), name
    with pytest.raises(AttributeError, match="Nothing"):
        api.Nothing  # noqa: B018


def test_importing_the_api_is_cheap() -> None:
    code = "import sys; from reconciler import api; print('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT)
    modules = set(ran.stdout.decode().split())
    assert not {"httpx", "msgspec", "yaml", "click", "asyncio", "reconciler.commands"} & modules


def test_runs_logs_gaps_and_a_backfill(emulator: RunningEmulator, tmp_path: Path) -> None:
    emulator.admin("POST", "clock", {"set": "2026-10-01T00:30:00Z"})
    rule = {"match": {"interval_end": "2026-10-01T03:00:00Z", "backfill": False}}
    rules = [{**rule, "status": "Failed", "error": "no access"}, {"status": "Completed"}]
    emulator.admin("PUT", "outcomes", rules)
    given = at("2026-10-01T00:30:00+00:00", workspace(tmp_path, emulator))
    api.run(api.apply(given, approve=lambda _: True))
    emulator.advance(hours=5)
    given = at("2026-10-01T05:30:00+00:00", given)

    report = api.run(api.runs(given, ["lake"], statuses=["Failed"]))
    assert [run.error for run in report.runs] == ["no access"]
    assert api.run(api.logs(given, "lake", run=report.runs[0].id)).entries
    assert api.run(api.gaps(given)).repairable == 1
    states = api.run(api.status(given)).exports
    assert [str(export.address) for export in states] == ["batch_export.lake"]

    wanted = api.ClosedGaps()
    with pytest.raises(ReconcilerError, match="not approved"):
        api.run(api.backfill(given, ["lake"], wanted, approve=lambda _: False))
    ended = api.run(api.backfill(given, ["lake"], api.ClosedGaps(), approve=lambda _: True))
    assert ended.complete
    emulator.advance(minutes=10)
    given = at("2026-10-01T05:40:00+00:00", given)
    assert api.run(api.gaps(given, length=timedelta(days=1))).gaps == 0


def test_pause_and_unpause(emulator: RunningEmulator, tmp_path: Path) -> None:
    given = workspace(tmp_path, emulator)
    api.run(api.apply(given, approve=lambda _: True))
    paused = api.run(api.pause(given, ["lake"], approve=lambda _: True))
    assert paused.ended.report.complete
    assert emulator.exports()["Lake"]["paused"]
    api.run(api.unpause(given, ["lake"], approve=lambda _: True))
    assert not emulator.exports()["Lake"]["paused"]
    assert api.run(api.load(given)).desired.resources
    planned = api.run(api.plan(given, api.PlanScope(targets=["lake"])))
    assert planned.plan.empty


def test_projects(emulator: RunningEmulator, tmp_path: Path) -> None:
    given = workspace(tmp_path, emulator)
    (line,) = api.run(api.projects(given)).projects
    before = api.run(api.show_project(given, line.id, reveal=True)).fields["api_token"]
    asked: list[ProjectDetails] = []

    def approve(details: ProjectDetails) -> bool:
        asked.append(details)
        return True

    after = api.run(api.reset_token(given, line.id, approve=approve, reveal=True))
    assert after.fields["api_token"] != before
    assert [details.fields["api_token"] for details in asked] == ["***"]
    assert api.run(api.project_activity(given, line.id)).fields["id"] == 1
    assert api.run(api.project_demo_data(given, line.id)).fields["id"] == 1


def test_import_and_compare(emulator: RunningEmulator, tmp_path: Path) -> None:
    body = {"name": "Pond", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    emulator.call("POST", "/api/projects/1/batch_exports/", body).raise_for_status()
    given = workspace(tmp_path, emulator)
    imported = api.run(api.import_(given, ["Pond"], dry_run=True))
    assert [str(item.address) for item in imported.adopted] == ["batch_export.pond"]
    write(tmp_path, {"reconciler.yaml": "version: 1\nenvironments: {a: {}, b: {}}\n"})
    overrides = {"overrides": {"b": {"interval": "day"}}}
    workspace_file = json.loads((tmp_path / "a.yaml").read_text(encoding="utf-8"))
    workspace_file["batch_exports"]["lake"] |= overrides
    write(tmp_path, {"a.yaml": json.dumps(workspace_file)})
    compared = api.run(api.compare(given, "a", "b"))
    assert [str(item.address) for item in compared.unintended] == ["batch_export.lake"]


def test_errors_are_exceptions(emulator: RunningEmulator, tmp_path: Path) -> None:
    given = workspace(tmp_path, emulator, intervall="hour")
    with pytest.raises(InvalidConfiguration) as caught:
        api.run(api.load(given))
    assert caught.value.diagnostics
    with pytest.raises(BadUsage):
        api.run(api.runs(workspace(tmp_path, emulator), ["nothing"]))
