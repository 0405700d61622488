"""Test the job summary, the outputs and the reports of plans in CI jobs."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.commands.screen import SUMMARY_LIMIT
from reconciler.model.plan import encode
from tests.support.cli import Ran, reconciler
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

_OUTPUT = re.compile(r"(\w+)<<(\w+)\n(.*?)\n\2\n", re.DOTALL)


def saved(folder: Path, count: int = 1, name: str = "plan.json") -> Path:
    """Save a plan that creates an export, and updates others each in its own way."""
    numbers = range(count)
    changed = [
        export(
            f"e{n}",
            name=f"é{n}",
            destination=s3(region=f"r{n}", prefix="é" * 100),
            **({"sql_query": f"SELECT {n} -- {'é' * 300}"} if n else {}),
        )
        for n in numbers
    ]
    live = [live_export(f"id{n}", f"é{n}") for n in numbers]
    plan = planned(desired_of(project(), *changed, export("new")), live_of(live_project(), *live))
    file = folder / name
    file.write_bytes(encode(plan))
    return file


def shown(file: Path, folder: Path) -> tuple[Ran, Path, Path]:
    summary, outputs = folder / "summary.md", folder / "outputs"
    environ = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs)}
    ran = reconciler("show", file, "--format", "github", environ=environ)
    assert ran.code == 0, ran.err
    return ran, summary, outputs


def test_a_file_name_cannot_forge_an_output(tmp_path: Path) -> None:
    file = saved(tmp_path, name="a\nto_destroy=0\nend\nplan_id<<end\nx")
    _, _, outputs = shown(file, tmp_path)
    written = _OUTPUT.findall(outputs.read_text())
    assert len(written) == 6
    assert len({end for _, end, _ in written}) == 6
    assert written[-1][2] == str(file)
    assert _OUTPUT.sub("", outputs.read_text()) == ""


def test_a_summary_is_cut_to_what_github_accepts(tmp_path: Path) -> None:
    file = saved(tmp_path, 60)
    (tmp_path / "summary.md").write_bytes(b"x" * (SUMMARY_LIMIT - 10_000))
    _, summary, _ = shown(file, tmp_path)
    assert SUMMARY_LIMIT - 3_000 < summary.stat().st_size <= SUMMARY_LIMIT
    assert "not shown" in summary.read_text(encoding="utf-8")
    ran, _, _ = shown(file, tmp_path)
    assert summary.stat().st_size <= SUMMARY_LIMIT
    assert "the job summary of this step is full" in ran.err


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = saved(tmp_path)
    ran = reconciler("show", file, "--format", "github", environ={"GITHUB_OUTPUT": str(tmp_path)})
    assert ran.code == 1
    assert f"{tmp_path} can't be written: " in ran.err
