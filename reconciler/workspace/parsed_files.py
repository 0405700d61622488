"""Parsed files and resources that several loads share, and the keys of files that none loaded.

Files that were not loaded are searched as text, since they may have errors.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from reconciler.diagnostics import Diagnostic, DiagnosticCollector
from reconciler.model.address import Address
from reconciler.model.resource import Resource
from reconciler.workspace.sources import MAX_ENTRIES, MAX_FILE_BYTES, SKIPPED_FOLDERS
from reconciler.workspace.yaml.document import Document, Places
from reconciler.workspace.yaml.loader import parse

_MAY_READ_FILE = re.compile(r"\{file:|\\[xuU]")
"""`${file:…}`, or escapes that could hide it: the result depends on another file."""
_SUFFIXES = (".yaml", ".yml")
_KEYS = re.compile(r"(?:^|[\s{,\"'])(\w[\w.-]*)[\"']?\s*:", re.MULTILINE | re.ASCII)


class _Parsed(Struct, frozen=True):
    """A document, and the diagnostics that a collector with these settings has of it."""

    document: Document
    diagnostics: tuple[Diagnostic, ...] = ()
    strict: bool = False
    lenient: frozenset[str] = frozenset()

    def fits(self, raw: bytes, problems: DiagnosticCollector) -> bool:
        settings = (self.strict, self.lenient) == (problems.strict, problems.lenient)
        same = self.document.text.encode() == raw.removeprefix(BOM_UTF8)
        return same and (settings or not self.diagnostics)


class ParsedFiles:
    """The documents of several loads, by file and content."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        """Begin with documents that have neither errors nor warnings."""
        self._parsed = {document.file: [_Parsed(document)] for document in documents}

    def parse(self, raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        """Return the document of a file, the same one for the same content."""
        parsed = self._parsed.setdefault(file, [])
        known = next((one for one in parsed if one.fits(raw, problems)), None)
        if known is None:
            own = DiagnosticCollector(strict=problems.strict, lenient=problems.lenient)
            document = parse(raw, file, own)
            known = _Parsed(document, tuple(own.diagnostics), own.strict, own.lenient)
            parsed.append(known)
        problems.diagnostics += known.diagnostics
        return known.document


class Snapshots(Struct):
    """The parsed files, and the resources without errors in them."""

    files: ParsedFiles = field(default_factory=ParsedFiles)
    _resources: dict[tuple[int, int, Address], tuple[Resource, Places]] = field(
        default_factory=dict
    )
    _reads_no_file: dict[int, bool] = field(default_factory=dict)

    def parse(self, raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        """Return the document of a file, the same one for the same content."""
        document = self.files.parse(raw, file, problems)
        if id(document) not in self._reads_no_file:
            self._reads_no_file[id(document)] = _MAY_READ_FILE.search(document.text) is None
        return document

    def known(
        self, workspace: Document, document: Document, address: Address
    ) -> tuple[Resource, Places] | None:
        """Return a resource that was resolved from the same documents, with its places."""
        return self._resources.get((id(workspace), id(document), address))

    def keep(
        self, workspace: Document, document: Document, resource: Resource, places: Places
    ) -> None:
        """Remember a resource that was resolved without errors, unless it may depend on a file."""
        if self._reads_no_file[id(workspace)] and self._reads_no_file[id(document)]:
            self._resources[id(workspace), id(document), resource.address] = (resource, places)


def keys_in_unloaded(folder: Path, loaded: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the keys at any depth of each file that was not loaded, by name.

    Hidden folders, those of other workspaces and all cases of file name suffixes are included.
    """
    return {
        name: frozenset(_KEYS.findall(path.read_text(encoding="utf-8", errors="replace")))
        for name, path in _yaml_files(folder)
        if name not in loaded
    }


def _yaml_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the regular files below a folder that can be read, up to a limit of entries."""
    entries = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            return
        for file in sorted(files):
            path = Path(parent, file)
            if not file.lower().endswith(_SUFFIXES) or path.is_symlink() or not path.is_file():
                continue
            if path.stat().st_size <= MAX_FILE_BYTES and os.access(path, os.R_OK):
                yield path.relative_to(folder).as_posix(), path
