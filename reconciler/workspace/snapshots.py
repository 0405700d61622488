"""What the configurations at several commits share, so that unchanged files cost little."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.errors import Diagnostic, DiagnosticCollector
from reconciler.model.address import Address
from reconciler.model.resource import Resource
from reconciler.workspace.yaml.document import Document, Places
from reconciler.workspace.yaml.loader import parse

_MAY_READ_FILE = re.compile(r"\{file:|\\[xuU]")
"""`${file:…}`, or escapes that could hide it: the result depends on another file."""


@dataclass(slots=True)
class Snapshots:
    """The parsed files, by name and content, and the resources without errors in them."""

    _parsed: dict[tuple[str, bytes], tuple[Document, tuple[Diagnostic, ...]]] = field(
        default_factory=dict
    )
    _resources: dict[tuple[int, int, Address], tuple[Resource, Places]] = field(
        default_factory=dict
    )
    _reads_no_file: dict[int, bool] = field(default_factory=dict)

    def parse(self, raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        """Return the document of a file, the same one for the same content."""
        if (file, raw) not in self._parsed:
            own = DiagnosticCollector(lenient=problems.lenient)
            document = parse(raw, file, own)
            self._parsed[file, raw] = document, tuple(own.diagnostics)
            self._reads_no_file[id(document)] = _MAY_READ_FILE.search(document.text) is None
        document, diagnostics = self._parsed[file, raw]
        problems.diagnostics += diagnostics
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
