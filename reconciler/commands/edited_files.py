"""Edit the files of a loaded workspace, for the use cases that write values into them."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reconciler.authoring.editing import Edit, edited
from reconciler.authoring.placing import Placing
from reconciler.diagnostics import DiagnosticCollector
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.file_change import FileChange
from reconciler.workspace.loading import Loaded
from reconciler.workspace.redaction import side_of
from reconciler.workspace.sources import FolderSource
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse


def edited_texts(
    folder: Path, documents: Iterable[Document], edits: Mapping[str, Sequence[Edit]]
) -> dict[str, str]:
    """Return the new texts of the files that change, by name. Raises ReconcilerError.

    `edits` are by file. A byte order mark stays.
    """
    source = FolderSource(folder)
    texts = {}
    for document in documents:
        text = edited(document, edits.get(document.file, ()), all_kinds())
        if text != document.text:
            is_marked = (source.read(document.file) or b"").startswith(BOM_UTF8)
            texts[document.file] = f"\ufeff{text}" if is_marked else text
    return texts


def file_changes(documents: Iterable[Document], texts: Mapping[str, str]) -> dict[str, FileChange]:
    """Return the changes of files, with secrets masked where they are shown."""
    before = {document.file: document for document in documents}
    return {
        name: FileChange(
            side_of(before[name]), side_of(parse(text.encode(), name, DiagnosticCollector()))
        )
        for name, text in texts.items()
    }


def placing_of(loaded: Loaded, address: Address) -> Placing:
    """Return where the values of a resource of an environment may be written."""
    declaration = loaded.declared[address]
    environment = loaded.desired.environment
    listed = declaration.body.get("environments")
    names = listed if isinstance(listed, list) else loaded.environments
    others = [other for other in loaded.declared if other.kind == address.kind]
    return Placing(
        declaration=declaration,
        places=loaded.places[address],
        environment=environment,
        environments=[str(name) for name in names if name != environment],
        default_is_shared=len(others) > 1,
    )
