"""What the configurations at several commits share, so that unchanged files cost little."""

from __future__ import annotations

import re

from msgspec import Struct, field

from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.address import Address
from reconciler.model.resource import Resource
from reconciler.workspace.parsed_files import ParsedFiles
from reconciler.workspace.yaml.document import Document, Places

_MAY_READ_FILE = re.compile(r"\{file:|\\[xuU]")
"""`${file:…}`, or escapes that could hide it: the result depends on another file."""


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
