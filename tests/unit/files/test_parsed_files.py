"""A content is parsed once, however many environments and commits have it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.commands import plan as plans
from reconciler.commands.history import WorkspaceHistory
from reconciler.commands.workspace import Runtime, Workspace, in_each
from reconciler.diagnostics import DiagnosticCollector
from reconciler.files import yaml_loader
from reconciler.files.loading import load
from reconciler.files.yaml_document import Document
from reconciler.files.yaml_loader import ParsedFiles, parse
from reconciler.git.repository import Repository
from tests.support.cli import write
from tests.support.git import Git

EXPORT = """\
batch_exports:
  {key}: {{project: web, name: {key}, interval: hour, destination: {{type: NoOp, config: {{}}}}}}
"""
FILES = {
    "reconciler.yaml": "version: 1\nenvironments: {dev: {}, prod: {}}\n",
    "projects.yaml": "projects: {web: {name: Web}}\n",
    "a.yaml": EXPORT.format(key="a"),
    "b.yaml": EXPORT.format(key="b"),
}
WARNS = b"# comment\nbatch_exports:\n  a: {name: \xe2\x80\x9cb\xe2\x80\x9d}\n"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each file is parsed for several loads."""
    count: Counter[str] = Counter()

    def counted(raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        count[file] += 1
        return parse(raw, file, problems)

    monkeypatch.setattr(yaml_loader, "parse", counted)
    return count


def test_problems_are_reported_again_at_the_level_of_each_collector() -> None:
    files = ParsedFiles()
    collectors = [
        DiagnosticCollector(lenient=frozenset(codes)) for codes in ((), ("curly-quotes",))
    ]
    for problems in (*collectors, *collectors):
        files.parse(WARNS, "a.yaml", problems)
    levels = [[problem.level.value for problem in problems.diagnostics] for problems in collectors]
    assert levels == [["error", "error"], ["warning", "warning"]]


def history_of(git: Git) -> WorkspaceHistory:
    loaded = load(git.folder, environment="dev", environ={})
    return WorkspaceHistory(Repository(git.folder, ""), git.folder, loaded, {}, git.head())


def test_a_commit_shares_the_files_that_did_not_change(
    tmp_path: Path, parsed: Counter[str]
) -> None:
    git = Git.init(write(tmp_path / "repo", FILES))
    git.commit()
    write(git.folder, {"b.yaml": EXPORT.format(key="c")})
    history = history_of(git)
    at_head = history.configuration(history.head or "")
    assert {address.key for address in at_head.resources} == {"web", "a", "b"}
    assert parsed == {**dict.fromkeys(FILES, 1), "b.yaml": 2}


def test_the_configurations_of_many_commits_are_loaded(tmp_path: Path) -> None:
    """It crashed where the versions of files were dropped, to keep memory small."""
    git = Git.init(write(tmp_path / "repo", FILES))
    keys = ["b", *(f"c{number}" for number in range(20))]
    commits = []
    for key in keys:
        write(git.folder, {"b.yaml": EXPORT.format(key=key)})
        commits.append(git.commit())
    history = history_of(git)
    found = [{at.key for at in history.configuration(commit).resources} for commit in commits]
    assert found == [{"web", "a", key} for key in keys]


def test_several_environments_parse_every_file_once(tmp_path: Path, parsed: Counter[str]) -> None:
    folder = write(tmp_path / "w", FILES)
    runtime = Runtime({}, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    workspace = Workspace(folder, runtime=runtime)
    planned = asyncio.run(in_each(plans.plan, workspace, ("dev", "prod")))
    assert [environment.error is not None for environment in planned] == [True, True]
    assert parsed == dict.fromkeys(FILES, 1)
