"""The use case `fmt`: format the files of a workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from reconciler.authoring.formatting import NOT_FORMATTED, format_file
from reconciler.authoring.writing import write_files
from reconciler.errors import BadUsage, DiagnosticCollector, InvalidConfiguration
from reconciler.kinds import all_kinds
from reconciler.model.file_change import FileChange, Formatted, Side
from reconciler.workspace.declarations import contents
from reconciler.workspace.redact_file import redact_file
from reconciler.workspace.redact_lines import with_lines
from reconciler.workspace.sources import WORKSPACE_FILE, FolderSource
from reconciler.workspace.workspace_file import read_workspace
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse


def format_workspace(folder: Path, files: Sequence[Path] = (), *, write: bool = True) -> Formatted:
    """Format the files of a workspace: all of them, or those that are named or in a named folder.

    Paths are relative to the current folder. Without `write`, nothing is changed.

    Raises:
        InvalidConfiguration: one of them is not valid YAML; nothing is written.
        BadUsage: a named file is not a file of the workspace.

    """
    source = FolderSource(folder)
    collector = DiagnosticCollector()
    texts = _contents(source, collector)
    names = _selected(folder, files, list(texts))
    documents: dict[str, Document] = {}
    changed: dict[str, FileChange] = {}
    for name in names:
        raw = texts[name]
        documents[name], text = format_file(raw, name, all_kinds(), collector)
        if text is not None and text.encode() != raw:
            before = _side(raw.decode("utf-8-sig"), documents[name])
            after = _side(text, parse(text.encode(), name, DiagnosticCollector()))
            changed[name] = FileChange(before, after)
    diagnostics = with_lines(collector.in_order(), documents)
    if collector.failed:
        raise InvalidConfiguration(diagnostics)
    if write:
        write_files(folder, {name: file.text for name, file in changed.items()})
    skipped = sum(diagnostic.code == NOT_FORMATTED for diagnostic in diagnostics)
    return Formatted(changed, len(names), skipped, diagnostics)


def _contents(source: FolderSource, collector: DiagnosticCollector) -> dict[str, bytes]:
    """Return every file of the workspace, `reconciler.yaml` first. Raises InvalidConfiguration.

    `reconciler.yaml` lists the files. Without it, or with a list that can't be read, any YAML file
    could be one of them: none is touched.
    """
    own = DiagnosticCollector()
    workspace = read_workspace(source, own)
    globs = workspace.value.get("resources", [])
    if own.failed and not (workspace.value and isinstance(globs, list)):
        raise InvalidConfiguration(with_lines(own.in_order(), {WORKSPACE_FILE: workspace.document}))
    texts = contents(source, workspace, collector)
    raw = source.read(WORKSPACE_FILE) or b""
    return {WORKSPACE_FILE: raw, **{name: text for name, text in texts if text is not None}}


def _selected(folder: Path, files: Sequence[Path], names: Sequence[str]) -> Sequence[str]:
    """Return the files that the caller names, in order. Raises BadUsage."""
    if not files:
        return names
    selected: set[str] = set()
    for path in files:
        wanted = Path(os.path.relpath(path, folder)).as_posix()
        matches = [name for name in names if wanted in (name, ".") or name.startswith(f"{wanted}/")]
        if not matches:
            raise BadUsage(
                f"{path} is not a file of this workspace"
                if path.exists()
                else f"{path} does not exist",
                hint="use a path relative to the current folder, of a file that `resources:` of "
                f"{WORKSPACE_FILE} includes",
            )
        selected.update(matches)
    return [name for name in names if name in selected]


def _side(text: str, document: Document) -> Side:
    return Side(tuple(text.splitlines(keepends=True)), redact_file(document))
