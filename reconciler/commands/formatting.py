"""The use case `fmt`: format the files of a workspace, or one text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reconciler.authoring.formatting import NOT_FORMATTED, format_file
from reconciler.authoring.writing import write_files
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.file_change import FileChange, Formatted
from reconciler.workspace.redaction import side_of
from reconciler.workspace.resource_files import Recognition, ResourceFiles, with_lines
from reconciler.workspace.sources import WORKSPACE_FILE, FolderSource
from reconciler.workspace.workspace_file import read_workspace
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import collector_paused


def format_workspace(
    folder: Path, files: Sequence[Path] = (), *, write: bool = True, diff: bool = False
) -> Formatted:
    """Format the files of a workspace: all of them, or those that are named or in a named folder.

    Paths are relative to the current folder. Without `write`, nothing is changed. With `diff`, the
    result contains the changes.

    Raises:
        InvalidConfiguration: one of them is not valid YAML; nothing is written.
        BadUsage: a named file is not a file of the workspace.

    """
    source = FolderSource(folder)
    collector = DiagnosticCollector(lenient=frozenset({"no-files"}))
    texts = _contents(source, collector)
    names = _selected(folder, files, list(texts))
    formatted = _formatted({name: texts[name] for name in names}, collector, diff=diff)
    if write:
        write_files(folder, formatted.changed)
    return formatted


def format_text(raw: bytes, name: str, *, diff: bool = False) -> tuple[str, Formatted]:
    """Return a formatted text, unchanged if it cannot be formatted, and what was done.

    The text is that of a file of any workspace with this name. Raises InvalidConfiguration.
    """
    formatted = _formatted({name: raw}, DiagnosticCollector(), diff=diff)
    text = formatted.changed.get(name)
    return raw.decode() if text is None else text, formatted


def _formatted(
    texts: Mapping[str, bytes], collector: DiagnosticCollector, *, diff: bool
) -> Formatted:
    """Format texts by name. Raises InvalidConfiguration."""
    documents: dict[str, Document] = {}
    changed: dict[str, str] = {}
    changes: dict[str, FileChange] = {}
    # The nodes of a file are freed without the collector, which would walk through them.
    with collector_paused():
        for name, raw in texts.items():
            known = len(collector.diagnostics)
            before, after = format_file(raw, name, all_kinds(), collector)
            if len(collector.diagnostics) > known:
                # Other documents are not kept: their nodes take most of the memory.
                documents[name] = before
            if after is not None and after.text.encode() != raw:
                changed[name] = after.text
                if diff:
                    changes[name] = FileChange(side_of(before), side_of(after))
    diagnostics = with_lines(collector.in_order(), documents)
    if collector.failed:
        raise InvalidConfiguration(diagnostics)
    skipped = sum(diagnostic.code == NOT_FORMATTED for diagnostic in diagnostics)
    return Formatted(changed, len(texts), changes, skipped, diagnostics)


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
    texts = ResourceFiles(source, workspace, Recognition(all_kinds()), collector).contents()
    raw = source.read(WORKSPACE_FILE) or b""
    return {WORKSPACE_FILE: raw, **{name: text for name, text in texts if text is not None}}


def _selected(folder: Path, files: Sequence[Path], names: Iterable[str]) -> Sequence[str]:
    """Return the files that the caller names, in order. Raises BadUsage."""
    known = tuple(names)
    if not files:
        return known
    selected: set[str] = set()
    for path in files:
        wanted = Path(os.path.relpath(path, folder)).as_posix()
        matches = [name for name in known if wanted in (name, ".") or name.startswith(f"{wanted}/")]
        if not matches:
            raise BadUsage(
                f"{path} is not a file of this workspace"
                if path.exists()
                else f"{path} does not exist",
                hint="use a path relative to the current folder, of a file that `resources:` of "
                f"{WORKSPACE_FILE} includes",
            )
        selected.update(matches)
    return [name for name in known if name in selected]
