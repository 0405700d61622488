"""Where values may be written, and the edits of the files of a loaded workspace."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FolderPath

from msgspec import Struct

from reconciler.diagnostics import InvalidConfiguration, Level
from reconciler.editing.editing import Edit, edited
from reconciler.files.loading import Loaded, load_all
from reconciler.files.references import escaped
from reconciler.files.sources import FolderSource
from reconciler.files.yaml.document import Document, Layer
from reconciler.model.address import Address
from reconciler.model.values import JSON, MISSING, UNSET, Path, leaves, references_in, value_at

_OVERRIDES = "overrides"


class Place(Struct, frozen=True):
    """One value for a file: the edit, and the label of its layer."""

    document: Document
    edit: Edit
    layer: str


class Placing(Struct, frozen=True):
    """Where the values of a resource of a loaded environment may be written."""

    loaded: Loaded
    address: Address

    def places_of(self, path: Path, value: JSON, configured: JSON) -> Iterator[Place]:
        """Yield what to write, so that a field has a value in this environment only.

        The path has the names of the files. Of mappings, only the keys that differ are written.
        """
        if isinstance(value, dict) and isinstance(configured, dict) and value:
            for name in {**configured, **value}:
                before, after = configured.get(name, MISSING), value.get(name, MISSING)
                if before != after:
                    yield from self.places_of((*path, name), after, before)
            return
        yield self._place(path, value)

    def _place(self, path: Path, value: JSON) -> Place:
        places = self.loaded.places[self.address]
        now, nearest = places.source_of(path)
        written = value_at(now.value, nearest) if nearest else MISSING
        is_reference = any(
            isinstance(leaf, str) and bool(references_in(leaf)) for _, leaf in leaves(written)
        )
        layer = self._layer(now, path, is_reference=is_reference)
        if value is MISSING:
            # A key in a lower layer would show through.
            below = (other.value for other in places.layers if other is not layer)
            is_below = any(value_at(other, path) is not MISSING for other in below)
            value = UNSET if is_below else MISSING
        else:
            value = escaped(value)
        return Place(layer.document, Edit((*layer.path, *path), value), layer.label)

    def _layer(self, now: Layer, path: Path, *, is_reference: bool) -> Layer:
        """Return the layer that gets the value of a field, which is in a layer now."""
        declaration, environment = self.loaded.declared[self.address], self.environment
        document, resource = declaration.document, declaration.path
        override = (*resource, _OVERRIDES, environment)
        if now.path == override or is_reference or self._is_shared(declaration.body, path):
            return Layer(document, override, f"override {environment}")
        is_default = now.path[: len(resource)] != resource
        users = sum(other.kind == self.address.kind for other in self.loaded.declared)
        return now if is_default and users == 1 else Layer(document, resource, "resource")

    def _is_shared(self, body: Mapping[str, JSON], path: Path) -> bool:
        """Return whether another environment has the value of the resource or of the defaults."""
        listed = body.get("environments")
        return any(
            value_at(body, (_OVERRIDES, str(name), *path)) is MISSING
            for name in (listed if isinstance(listed, list) else self.loaded.environments)
            if name != self.environment
        )

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self.loaded.desired.environment


def edited_texts(folder: FolderPath, edits: Iterable[tuple[Document, Edit]]) -> dict[str, str]:
    """Return the new texts of the files that change, by name. Raises ReconcilerError.

    A byte order mark stays.
    """
    source, texts = FolderSource(folder), {}
    by_file: dict[str, tuple[Document, list[Edit]]] = {}
    for document, edit in edits:
        by_file.setdefault(document.file, (document, []))[1].append(edit)
    for file, (document, own) in by_file.items():
        text = edited(document, own)
        if text != document.text:
            texts[file] = with_mark(source, file, text)
    return texts


def with_mark(source: FolderSource, file: str, text: str) -> str:
    """Return a text with the byte order mark of its file, which documents do not have."""
    return f"\ufeff{text}" if (source.read(file) or b"").startswith(BOM_UTF8) else text


def check_files(
    folder: FolderPath, environ: Mapping[str, str], drafts: Mapping[str, str] | None = None
) -> None:
    """Raise InvalidConfiguration if the files have errors in any environment.

    `drafts` are texts in place of some files.
    """
    diagnostics = load_all(folder, environ=environ, drafts=drafts)
    errors = tuple(item for item in diagnostics if item.level is Level.ERROR)
    if errors:
        raise InvalidConfiguration(errors)
