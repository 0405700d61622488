"""A content is parsed once, however many environments and commits have it."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.commands import plan as plans
from reconciler.commands.history import WorkspaceHistory
from reconciler.commands.workspace import Runtime, Workspace, in_each
from reconciler.diagnostics import DiagnosticCollector, Level
from reconciler.files import yaml_loader
from reconciler.files.loading import load
from reconciler.files.yaml_document import Document
from reconciler.files.yaml_loader import ParsedFiles, collector_paused, parse
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


def test_problems_are_reported_again_at_the_level_of_each_collector() -> None:
    files = ParsedFiles()
    for codes, level in (((), Level.ERROR), (("curly-quotes",), Level.WARNING)) * 2:
        problems = DiagnosticCollector(lenient=frozenset(codes))
        files.parse("a: {name: “b”}\n".encode(), "a.yaml", problems)
        assert [problem.level for problem in problems.diagnostics] == [level]


def test_the_configurations_of_many_commits_are_loaded(tmp_path: Path) -> None:
    """It crashed where the versions of files were dropped, to keep memory small."""
    git = Git.init(write(tmp_path / "repo", FILES))
    keys, commits = [f"c{number}" for number in range(20)], []
    for key in keys:
        write(git.folder, {"b.yaml": EXPORT.format(key=key)})
        commits.append(git.commit())
    head = load(git.folder, environment="dev", environ={})
    history = WorkspaceHistory(Repository(git.folder, ""), git.folder, head, {}, git.head())
    found = [{at.key for at in history.configuration(commit).resources} for commit in commits]
    assert found == [{"web", "a", key} for key in keys]


def test_the_files_of_a_commit_are_freed_with_it(tmp_path: Path) -> None:
    """A command hardly collects cycles: a hundred commits kept all that they had parsed."""
    git = Git.init(write(tmp_path / "repo", FILES))
    first = git.commit()
    write(git.folder, {"b.yaml": EXPORT.format(key="c")})
    head = load(git.folder, environment="dev", environ={})
    history = WorkspaceHistory(Repository(git.folder, ""), git.folder, head, {}, git.commit())
    head.parsed.clear()
    gc.collect()
    before = sum(isinstance(item, Document) for item in gc.get_objects())
    with collector_paused():
        history.configuration(first)
        head.parsed.clear()
        assert sum(isinstance(item, Document) for item in gc.get_objects()) == before


def test_several_environments_parse_every_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count: Counter[str] = Counter()

    def counted(raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        count[file] += 1
        return parse(raw, file, problems)

    monkeypatch.setattr(yaml_loader, "parse", counted)
    runtime = Runtime({}, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    workspace = Workspace(write(tmp_path / "w", FILES), runtime=runtime)
    planned = asyncio.run(in_each(plans.plan, workspace, ("dev", "prod")))
    assert [environment.error is not None for environment in planned] == [True, True]
    assert count == dict.fromkeys(FILES, 1)
