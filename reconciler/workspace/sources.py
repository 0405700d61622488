"""Read the files of a workspace from its folder, with drafts in place of some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Protocol

from reconciler.errors import ReconcilerError

WORKSPACE_FILE = "reconciler.yaml"
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})

_REGEX_OF = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_WILDCARD = re.compile(r"\*\*/|\*\*|.", re.DOTALL)


class Source(Protocol):
    """A set of files with paths relative to the workspace, forward slashes."""

    def names(self) -> Sequence[str]:
        """Return every file below the folder, sorted."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if it does not exist or cannot be read."""
        ...


class FolderSource:
    """The files on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise ReconcilerError(
                f"folder {folder} does not exist", hint="use -C to name the workspace folder"
            )

    def names(self) -> Sequence[str]:
        """Return every file below the folder, without hidden and vendored folders."""
        return sorted(self._walk(self.folder, ""))

    def _walk(self, folder: Path, prefix: str) -> Iterable[str]:
        for entry in folder.iterdir():
            if entry.is_dir() and is_passed_over(entry.name):
                continue
            if entry.is_dir() and not entry.is_symlink():
                yield from self._walk(entry, f"{prefix}{entry.name}/")
            elif not entry.is_dir():
                yield f"{prefix}{entry.name}"

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. Links out of the folder are not followed."""
        path = self.folder / name
        try:
            if not path.resolve().is_relative_to(self.folder.resolve()):
                return None
            return path.read_bytes()
        except (OSError, RuntimeError):
            # Older Pythons raise RuntimeError for links in a circle.
            return None


class DraftSource:
    """The files of a source as they will be when drafts are written."""

    def __init__(self, source: Source, drafts: Mapping[str, str]) -> None:
        self._source = source
        self._drafts = drafts

    def names(self) -> Sequence[str]:
        """Return every file, drafts included."""
        return sorted({*self._source.names(), *self._drafts})

    def read(self, name: str) -> bytes | None:
        """Return the content of a draft or a file."""
        draft = self._drafts.get(name)
        return draft.encode() if draft is not None else self._source.read(name)


class ReadSource:
    """The files of a source. `digests` are those of the files that were read, by name."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.digests: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """Return every file."""
        return self._source.names()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file."""
        raw = self._source.read(name)
        if raw is not None:
            self.digests[normpath(name)] = digest_of_file(raw)
        return raw


def digest_of_file(raw: bytes) -> str:
    """Return the SHA-256 of a file, the same for both kinds of line ends."""
    return sha256(raw.replace(b"\r\n", b"\n")).hexdigest()


def is_passed_over(folder: str) -> bool:
    """Return whether a folder of this name is skipped: hidden and vendored ones."""
    return folder in _SKIPPED or folder.startswith(".")


def matching(names: Sequence[str], glob: str) -> list[str]:
    """Return the names that a glob matches. `**` matches zero or more folders."""
    regex = _WILDCARD.sub(lambda match: _REGEX_OF.get(match[0]) or re.escape(match[0]), glob)
    pattern = re.compile(regex)
    return [name for name in names if pattern.fullmatch(name)]


def leaves_workspace(glob: str) -> bool:
    """Return whether a path or glob points outside the folder."""
    path = PurePosixPath(glob.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or bool(re.match(r"[A-Za-z]:", glob))
