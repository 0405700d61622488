"""The Python API: the example of docs/api.md, typed results, approval, and errors."""

from __future__ import annotations

import asyncio
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

import reconciler
from reconciler import Runtime, Workspace, api
from reconciler.commands.apply.execution import Screen, apply
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import BadUsage, ReconcilerError, RefusedByPolicy
from reconciler.model.settings import PlanOptions
from tests.conftest import ROOT
from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT
from tests.support.simulated import no_op_export

EXAMPLE = ROOT / "examples/api.py"
KNOWN = {"Awaitable", "Callable", "Path", "Sequence", "None", "False", "True"} | {
    *("Announce", "MakePlan", "Moment", "Screen", "Wanted"),
}
"""The types of the standard library, and those that docs/api.md describes."""
DOCS = (ROOT / "docs/api.md").read_text(encoding="utf-8")


def workspace(folder: Path, emulator: RunningEmulator, **fields: Any) -> Workspace:
    lake = no_op_export("Lake", project={"id": 1}, **fields)
    text = json.dumps({"batch_exports": {"lake": lake}})
    files = {"reconciler.yaml": "version: 1\n", "a.yaml": text}
    return Workspace(write(folder, files), runtime=Runtime(emulator.environ()))


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
    blocks = DOCS.split("```python\n")[1:]
    assert EXAMPLE.read_text(encoding="utf-8") in [block.partition("```")[0] for block in blocks]


NAMES = [name for name in vars(api) if not name.startswith("_")]


def signature(name: str) -> str:
    """Return the definition of a function of the API, as docs/api.md has it."""
    value = getattr(reconciler, name)
    prefix = "async def" if inspect.iscoroutinefunction(value) else "def"
    text = re.sub(r"= <[^,]*>(?=[,)])", "= ...", f"{prefix} {name}{inspect.signature(value)}: ...")
    return re.sub(r"'|datetime\.(?=timedelta)", "", text.replace("''", '""'))


def test_every_function_is_documented() -> None:
    for name in NAMES:
        assert re.search(rf"\b{name}\b", DOCS), name
        value = getattr(reconciler, name)
        if inspect.isfunction(value):
            assert "Raises" in (inspect.getdoc(value) or ""), name


def test_ecosystem_7_the_page_has_the_signatures() -> None:
    functions = sorted(name for name in NAMES if inspect.isfunction(getattr(reconciler, name)))
    source = "\n".join(map(signature, functions))
    words = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=100", "-"]
    text = subprocess.run(
        words, input=source, capture_output=True, text=True, check=True, timeout=TIMEOUT
    ).stdout.replace("\n\n\n", "\n")
    assert f"```python\n{text}```" in DOCS


def test_ecosystem_7_classes_that_functions_take_and_return_are_exported() -> None:
    for name in NAMES:
        if inspect.isfunction(getattr(reconciler, name)):
            classes = set(re.findall(r"\b[A-Z]\w+", signature(name))) - KNOWN
            assert classes <= set(NAMES), name
    with pytest.raises(AttributeError, match="Nothing"):
        reconciler.Nothing  # noqa: B018


def test_importing_the_api_is_cheap() -> None:
    code = "import sys, reconciler; print('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT)
    modules = set(ran.stdout.decode().split())
    assert not {"httpx", "msgspec", "yaml", "click", "asyncio", "reconciler.commands"} & modules


def test_what_is_asked_when_and_that_nothing_is_sent_without_approval(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    said: list[str] = []

    def applied(answer: bool | None, policy: str = "{}") -> bool:
        async def approve(_: object) -> bool:
            said.append("approve")
            return bool(answer)

        said.clear()
        settings = f"version: 1\npolicy: {policy}\n"
        write(tmp_path, {"reconciler.yaml": settings, "web.yaml": "projects: {web: {name: Web}}\n"})
        applying = apply(
            Workspace(tmp_path, runtime=Runtime(emulator.environ())),
            PlanOptions(no_inventory=True),
            approve=None if answer is None else approve,
            screen=Screen(lambda *_: said.append("show"), lambda _: said.append("report")),
        )
        return bool(asyncio.run(applying).ended.report.done)

    with pytest.raises(BadUsage, match="no terminal to ask for approval"):
        applied(None)
    assert said == []
    with pytest.raises(ReconcilerError, match="not approved; nothing was sent"):
        applied(answer=False)
    assert said == ["show", "approve"]
    with pytest.raises(RefusedByPolicy):
        applied(answer=True, policy="{deny: [new-api-token]}")
    assert (said, emulator.writes()) == (["show"], [])
    assert applied(answer=True)
    assert said == ["show", "approve", "report"]
    # An empty plan needs no approval.
    assert not applied(answer=True)
    assert said == ["show", "report"]


def test_errors_are_exceptions(emulator: RunningEmulator, tmp_path: Path) -> None:
    given = workspace(tmp_path, emulator, intervall="hour")
    with pytest.raises(InvalidConfiguration) as caught:
        reconciler.load(given)
    assert caught.value.diagnostics
    with pytest.raises(BadUsage):
        asyncio.run(reconciler.runs(workspace(tmp_path, emulator), ["nothing"]))
