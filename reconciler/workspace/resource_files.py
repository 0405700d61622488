"""Read the resource files of a workspace."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import UnreadableFile
from reconciler.model.address import has_wildcard
from reconciler.model.text import listed
from reconciler.workspace.foreign import Recognition, is_misnamed
from reconciler.workspace.limits import MAX_TOTAL_BYTES, MAX_TOTAL_NODES
from reconciler.workspace.patterns import resource_globs, selected_files
from reconciler.workspace.sources import WORKSPACE_FILE, Source
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import Parse, parse

_MOST_LISTED = 5


class ResourceFiles(Struct, frozen=True):
    """The resource files of a workspace.

    `skipped` are files without resources that a pattern with wildcards selects, once the files are
    read.
    """

    source: Source
    workspace: Workspace
    recognition: Recognition
    problems: DiagnosticCollector
    parse: Parse = parse
    skipped: list[str] = field(default_factory=list)

    def documents(self) -> list[Document]:
        """Return every resource file, parsed, sorted by name. Those after a limit are unread."""
        files: list[Document] = []
        nodes = 0
        for name, raw in self.contents():
            if raw is None or nodes > MAX_TOTAL_NODES:
                files.append(Document(name, unread=True))
                continue
            document = self.parse(raw, name, self.problems)
            files.append(document)
            nodes += document.nodes
            if nodes > MAX_TOTAL_NODES:
                self._report_end(f"{MAX_TOTAL_NODES:,} values", name)
        return files

    def contents(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the name and bytes of every resource file, sorted; None for unreadable bytes."""
        named = {glob for glob in resource_globs(self.workspace) if not has_wildcard(glob)}
        size = 0
        for name in selected_files(self.source, self.workspace, self.problems):
            raw = self._read(name) if size <= MAX_TOTAL_BYTES else None
            if raw is not None and name not in named and self._is_skipped(name, raw):
                self.skipped.append(name)
            else:
                yield name, raw
            if raw is not None:
                size += len(raw)
                if size > MAX_TOTAL_BYTES:
                    self._report_end(f"{MAX_TOTAL_BYTES:,} bytes", name)

    def note_skipped(self) -> None:
        """Add one note about all skipped files without an error of their own."""
        names = [name for name in self.skipped if not is_misnamed(name)]
        if not names:
            return
        what = "file is not a resource file" if len(names) == 1 else "files are not resource files"
        message = f"{len(names)} {what}: {listed(names, _MOST_LISTED)}"
        self.problems.note("skipped-files", message)

    def _is_skipped(self, name: str, raw: bytes) -> bool:
        if not self.recognition.is_foreign(raw, name, self.parse):
            return False
        if is_misnamed(name):
            self.problems.error(
                "misnamed-workspace",
                f"{name} is not read: a workspace file has the name {WORKSPACE_FILE}",
                at=Mark(name),
            )
        return True

    def _read(self, name: str) -> bytes | None:
        try:
            raw = self.source.read(name)
        except UnreadableFile as error:
            self.problems.error(error.code, error.message, at=Mark(name))
            return None
        if raw is None:
            self.problems.error(
                "unreadable-file",
                f"cannot read {name}: a link that is broken or leaves the folder",
                at=Mark(name),
            )
        return raw

    def _report_end(self, limit: str, name: str) -> None:
        message = f"more than {limit} in all files: those after {name} are not read"
        self.problems.error("workspace-too-large", message, at=Mark(name))
