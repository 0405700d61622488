"""The use case `fmt`: the files of a workspace in good order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.authoring.formatting import NOT_FORMATTED, format_file
from reconciler.authoring.writing import write_files
from reconciler.errors import BadUsage, Diagnostic, DiagnosticCollector, InvalidConfiguration
from reconciler.kinds import all_kinds
from reconciler.workspace.declarations import contents
from reconciler.workspace.redact_file import redact_file
from reconciler.workspace.redact_lines import with_lines
from reconciler.workspace.sources import WORKSPACE_FILE, FolderSource
from reconciler.workspace.workspace_file import read_workspace
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Which workspace, and which of its files: all if none is named, all below a named folder.

    Paths are relative to the current folder. Without `write`, nothing is changed.
    """

    folder: Path
    files: tuple[Path, ...] = ()
    write: bool = True


@dataclass(frozen=True, slots=True)
class Side:
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file that was not in order."""

    text: str
    before: Side
    after: Side


@dataclass(frozen=True, slots=True)
class Formatted:
    """What was not in order, by name, and how many files were looked at.

    `diagnostics` are warnings, such as files that can't be put into order safely.
    """

    changed: Mapping[str, Rewritten]
    looked_at: int
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def left_alone(self) -> int:
        """How many files can't be put into order safely."""
        return sum(each.code == NOT_FORMATTED for each in self.diagnostics)


def format_workspace(options: FormatOptions) -> Formatted:
    """Put the files of a workspace into order: all of them, or those that are named.

    Raises:
        InvalidConfiguration: one of them is no valid YAML. Then nothing is written anywhere.
        BadUsage: a named file is no file of the workspace.

    """
    source = FolderSource(options.folder)
    problems = DiagnosticCollector()
    texts = _contents(source, problems)
    texts = {name: texts[name] for name in _chosen(options, list(texts))}
    documents: dict[str, Document] = {}
    found: dict[str, tuple[bytes, str]] = {}
    for name, raw in texts.items():
        documents[name], text = format_file(raw, name, all_kinds(), problems)
        if text is not None and text.encode() != raw:
            found[name] = (raw, text)
    told = with_lines(problems.in_order(), documents)
    if problems.failed:
        raise InvalidConfiguration(told)
    if options.write:
        write_files(options.folder, {name: text for name, (_, text) in found.items()})
    changed = {
        name: Rewritten(text, _side(raw.decode("utf-8-sig"), documents[name]), _after(name, text))
        for name, (raw, text) in found.items()
    }
    return Formatted(changed, len(texts), told)


def _contents(source: FolderSource, problems: DiagnosticCollector) -> dict[str, bytes]:
    """Every file of the workspace, `reconciler.yaml` first. Raises InvalidConfiguration.

    Which files there are is told by `reconciler.yaml`. Without it, or with a list of files that
    can't be understood, any YAML file could be meant: none is touched.
    """
    own = DiagnosticCollector()
    workspace = read_workspace(source, own)
    globs = workspace.value.get("resources", [])
    if own.failed and not (workspace.value and isinstance(globs, list)):
        raise InvalidConfiguration(with_lines(own.in_order(), {WORKSPACE_FILE: workspace.document}))
    raw = source.read(WORKSPACE_FILE) or b""
    found = contents(source, workspace, problems)
    return {WORKSPACE_FILE: raw, **{name: each for name, each in found if each is not None}}


def _chosen(options: FormatOptions, names: Sequence[str]) -> Sequence[str]:
    """The names that the caller means. Raises BadUsage."""
    if not options.files:
        return names
    wanted: set[str] = set()
    for path in options.files:
        name = Path(os.path.relpath(path, options.folder)).as_posix()
        fitting = [each for each in names if name in (each, ".") or each.startswith(f"{name}/")]
        if not fitting:
            there = path.exists()
            raise BadUsage(
                f"{path} is no file of this workspace" if there else f"there is no {path}",
                hint="paths are relative to the current folder, and `resources:` of "
                f"{WORKSPACE_FILE} says which files are read",
            )
        wanted.update(fitting)
    return [name for name in names if name in wanted]


def _after(name: str, text: str) -> Side:
    return _side(text, parse(text.encode(), name, DiagnosticCollector()))


def _side(text: str, document: Document) -> Side:
    return Side(tuple(text.splitlines(keepends=True)), redact_file(document))
