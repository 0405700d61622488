"""The files of a workspace at a commit, read once however many commits contain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath

from msgspec import Struct, field

from reconciler.providers.file import is_hidden
from reconciler.workspace.git.repository import Entry, Repository
from reconciler.workspace.sources import (
    MAX_FILE_BYTES,
    MAX_TOTAL_BYTES,
    WORKSPACE_FILE,
    content_id,
    is_own,
    too_large,
)

_YAML = (".yaml", ".yml")
_MOST_LINKS = 10


class Blobs(Struct):
    """The contents of blobs, by id. Raises GitUnavailable."""

    repository: Repository
    _contents: dict[str, bytes] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def is_prepared(self, blob: str) -> bool:
        """Return whether a blob was read, or was too large."""
        return blob in self._sizes

    def prepare(self, ids: Iterable[str]) -> None:
        """Read several blobs at once, without those that are too large, alone or together."""
        missing = sorted({blob for blob in ids if blob not in self._sizes})
        if not missing:
            return
        sizes = {**dict.fromkeys(missing, 0), **self.repository.sizes(missing)}
        self._sizes |= sizes
        small = [blob for blob in missing if sizes[blob] <= MAX_FILE_BYTES]
        if sum(sizes[blob] for blob in small) <= MAX_TOTAL_BYTES:
            self._contents |= self.repository.blobs(small)

    def read(self, blob: str, name: str) -> bytes:
        """Return the content of a blob, the file `name`. Raises UnreadableFile if it is large."""
        self.prepare((blob,))
        if self._sizes[blob] > MAX_FILE_BYTES:
            raise too_large(name, self._sizes[blob])
        if blob not in self._contents:
            self._contents |= self.repository.blobs((blob,))
        return self._contents[blob]


# Without slots, since cached properties need a dict.
class GitSource(Struct, frozen=True, dict=True):
    """The files of a workspace in a tree, None for a workspace that does not exist there."""

    blobs: Blobs
    tree: str | None

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        return self.blobs.repository.entries(self.tree) if self.tree is not None else {}

    @cached_property
    def _names(self) -> Sequence[str]:
        # Folders are not among the entries, and links to them are not files.
        folders = {str(parent) for name in self._entries for parent in PurePosixPath(name).parents}
        nested = {dirname(name) for name in self._entries if name.endswith(f"/{WORKSPACE_FILE}")}
        return sorted(
            name
            for name, entry in self._entries.items()
            if is_own(name, nested) and not (entry.is_link and self._target(name) in folders)
        )

    def names(self) -> Sequence[str]:
        """Return every file, without hidden and vendored ones and those of other workspaces."""
        return self._names

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. Links to hidden files or out of the workspace have none.

        Raises UnreadableFile for a file that is too large.
        """
        blob = self._blob(name)
        if blob is None:
            return None
        if not self.blobs.is_prepared(blob):
            entries = self._entries.items()
            self.blobs.prepare(entry.blob for path, entry in entries if path.endswith(_YAML))
        return self.blobs.read(blob, name)

    def has(self, name: str, content: str) -> bool:
        """Return whether a file has the content of an id. Git reads it only if its own id differs.

        Raises UnreadableFile for one that is too large.
        """
        if self._blob(name) == content:
            return True
        raw = self.read(name)
        return raw is not None and content_id(raw) == content

    def _blob(self, name: str) -> str | None:
        """Return the id of the content of a file, behind links too."""
        path = normpath(name)
        for _ in range(_MOST_LINKS):
            entry = self._entries.get(path)
            if entry is None or not entry.is_link:
                return entry.blob if entry is not None else None
            path = self._target(path)
            if is_hidden(path):
                return None
        return None

    def _target(self, link: str) -> str:
        text = self.blobs.read(self._entries[link].blob, link).decode(errors="replace")
        return normpath(join(dirname(link), text))
