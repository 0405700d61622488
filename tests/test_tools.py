"""`scripts/tools`: what cannot be installed is listed, and is no error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

NEEDED = ("bash", "cat", "id", "mkdir", "tail")


def test_programs_that_cannot_be_installed_are_listed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        program = shutil.which(name)
        if program is None:
            pytest.skip(f"{name} is not installed")
        (tmp_path / "bin" / name).symlink_to(program)
    for name, text in {"go": "echo no network >&2; exit 1", "zsh": "exit 0"}.items():
        (tmp_path / "bin" / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    ended = subprocess.run(
        [tmp_path / "bin/bash", ROOT / "scripts/tools", tmp_path / "tools"],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines == (tmp_path / "tools/skipped").read_text().splitlines()
    assert "actionlint skipped: go cannot install it (no network)." in lines
    assert "yaml-language-server skipped: npm is not installed." in lines
    skipped = {line.partition(" ")[0] for line in lines}
    assert {"kubeconform", "check-jsonschema", "fish", "groff", "opa"} <= skipped
    assert "zsh" not in skipped
