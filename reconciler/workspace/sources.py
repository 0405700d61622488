"""Where files are read from: the folder of the workspace, or a git commit of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from reconciler.errors import ReconcilerError

WORKSPACE_FILE = "reconciler.yaml"
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})


class Source(Protocol):
    """A set of files with paths relative to the workspace, forward slashes."""

    def names(self) -> Sequence[str]:
        """Every file below the folder, sorted."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if it is not there or can't be read."""
        ...


class FolderSource:
    """The files as they are on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise ReconcilerError(
                f"there is no folder {folder}", hint="name the folder of the workspace with -C"
            )

    def names(self) -> Sequence[str]:
        """Every file below the folder, hidden and vendored folders aside."""
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
        """The bytes of a file inside the folder; a link that leads outside is not followed."""
        path = self.folder / name
        try:
            if not path.resolve().is_relative_to(self.folder.resolve()):
                return None
            return path.read_bytes()
        except (OSError, RuntimeError):
            # Links in a circle are a RuntimeError to older Pythons.
            return None


class DraftSource:
    """A source with drafts over it: its files as they will be once the drafts are written."""

    def __init__(self, source: Source, drafts: Mapping[str, str]) -> None:
        self._source = source
        self._drafts = drafts

    def names(self) -> Sequence[str]:
        """Return every file, with those that are not written yet."""
        return sorted({*self._source.names(), *self._drafts})

    def read(self, name: str) -> bytes | None:
        """Return the content of a file as it will be."""
        draft = self._drafts.get(name)
        return draft.encode() if draft is not None else self._source.read(name)


def is_passed_over(folder: str) -> bool:
    """Whether a folder of this name is never looked into: hidden and vendored ones."""
    return folder in _SKIPPED or folder.startswith(".")


def matching(names: Sequence[str], glob: str) -> list[str]:
    """Return the names that a glob matches; `**` is any number of folders, none included."""
    pattern = re.compile(_as_regex(glob))
    return [name for name in names if pattern.fullmatch(name)]


def leaves_workspace(glob: str) -> bool:
    """Whether a path or glob points outside the folder."""
    path = PurePosixPath(glob.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or bool(re.match(r"[A-Za-z]:", glob))


def _as_regex(glob: str) -> str:
    parts = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            parts.append(".*")
            at += 2
        elif glob[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            parts.append("[^/]")
            at += 1
        else:
            parts.append(re.escape(glob[at]))
            at += 1
    return "".join(parts)
