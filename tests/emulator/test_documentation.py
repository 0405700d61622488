"""The session in docs/inside/emulator.md works as it is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from reconciler.emulator.fault_effects import EFFECTS
from reconciler.emulator.faults import faults_of
from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

DOCUMENT = (ROOT / "docs/inside/emulator.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("curl") is None, reason="the session calls curl")
def test_the_session_works_as_printed(tmp_path: Path) -> None:
    session = DOCUMENT.split("## A session")[1].split("## Options")[0]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", session, re.DOTALL))
    scripts = Path(sys.executable).parent
    ran = subprocess.run(
        ["bash", "-emc", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "export.json").read_text())["name"] == "Lake"
    assert '"status":"Completed"' in ran.stdout or '"status":"Failed"' in ran.stdout
    assert '"message":"Exporting' in ran.stdout
    assert '"status":503' in ran.stdout
    assert '"name":"Pond"' in ran.stdout
    assert "hidden" not in ran.stdout


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_every_fault_is_documented_with_its_parameters(name: str) -> None:
    section = DOCUMENT.split("## Faults")[1]
    row = next(line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
    for parameter in fields(EFFECTS[name]):
        assert f"`{parameter.name}`" in row


def test_the_examples_of_faults_are_valid() -> None:
    section = DOCUMENT.split("## Faults")[1]
    examples = [
        yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    ]
    assert examples
    kinds = {fault.kind for example in examples for fault in faults_of(example)}
    assert {"late", "hidden", "twin", "page", "lag", "body", "gzip", "throttle"} <= kinds
