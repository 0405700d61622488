"""Test the registry of output formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.errors import BadUsage
from reconciler.model.plan import encode
from reconciler.render.formats import RESULTS, formats_of, writer_of
from tests.support.limits import TIMEOUT
from tests.support.worlds import desired_of, export, live_of, live_project, planned, project

TOY = '''\
"""Write the place of every change."""

from reconciler.render.plan_document import document_of


def _plan(plan, options):
    entries = document_of(plan).entries
    return "".join(f"{entry.change.at}: {entry.title}\\n" for entry in entries)


WRITERS = {"plan": _plan}
'''
RUN = """\
import sys
from reconciler.render import formats
formats.__path__.append(sys.argv.pop(1))
from reconciler.commands import main
main()
"""


def run(folder: Path, *arguments: str) -> str:
    completed = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=True,
    )
    return completed.stdout


def test_a_format_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    saved = tmp_path / "plan.json"
    saved.write_bytes(encode(planned(desired_of(project(), export()), live_of(live_project()))))
    assert "sarif, toy." in " ".join(run(tmp_path, "plan", "--help").split())
    assert "toy" not in run(tmp_path, "validate", "--help")
    assert run(tmp_path, "show", str(saved), "--format", "toy") == (
        'None: batch_export.lake "Lake"\n'
    )


@pytest.mark.parametrize("result", RESULTS)
def test_every_writer_exists(result: str) -> None:
    for name in formats_of(result):
        assert callable(writer_of(name, result))


def test_the_default_comes_first() -> None:
    assert formats_of("plan") == (
        "text",
        "github",
        "gitlab",
        "html",
        "json",
        "markdown",
        "sarif",
    )
    assert formats_of("diagnostics") == (
        "text",
        "github",
        "gitlab",
        "json",
        "sarif",
    )
    reports = {result for result in RESULTS if result not in ("plan", "plans", "diagnostics")}
    assert formats_of("backfills") == ("text", "json")
    for result in reports - {"backfills"}:
        assert formats_of(result) == ("text", "html", "json", "markdown")


def test_the_error_for_an_unsupported_format_lists_the_supported_ones() -> None:
    with pytest.raises(BadUsage) as refused:
        writer_of("markdown", "diagnostics")
    assert refused.value.message == "--format markdown is not supported here"
    assert refused.value.hint == "use one of: text, github, gitlab, json, sarif"
