"""Read the files of a workspace from its folder, within limits, with drafts in place of some."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from posixpath import normpath
from types import MappingProxyType
from typing import Protocol

from reconciler.errors import FilesChanged, ReconcilerError, UnreadableFile
from reconciler.model.text import printable
from reconciler.paths import (
    MAX_FILE_BYTES,
    WORKSPACE_FILE,
    content_id,
    is_own,
    is_passed_over,
    leaves_workspace,
    too_large,
)
from reconciler.providers.file import is_hidden


class Source(Protocol):
    """A set of files with paths relative to the workspace, forward slashes."""

    def names(self) -> Sequence[str]:
        """Return every file of the workspace, sorted."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none in the folder.

        Raises UnreadableFile for one that exists and cannot be read.
        """
        ...


class FolderSource:
    """The files on disk, with drafts in place of some, by name: as they will be when written."""

    def __init__(self, folder: Path, drafts: Mapping[str, str] = MappingProxyType({})) -> None:
        self.folder = folder
        self._drafts = drafts
        self._seen: dict[str, tuple[int, ...]] = {}

    @cached_property
    def _root(self) -> Path:
        if not self.folder.is_dir():
            hint = "use -C to name the workspace folder"
            raise ReconcilerError(f"folder {self.folder} does not exist", hint=hint)
        _check_place(self.folder)
        return self.folder.resolve()

    def names(self) -> Sequence[str]:
        """Return every file of the workspace.

        Without hidden files, and those of hidden folders, vendored ones and other workspaces, but
        with the workspace files of those.

        Raises ReconcilerError for a folder that cannot be read.
        """
        walked = {*self._walk()}
        nested = {name.rpartition("/")[0] for name in walked if name.endswith(f"/{WORKSPACE_FILE}")}
        return sorted(walked | {name for name in self._drafts if is_own(name, nested)})

    def _walk(self) -> Iterator[str]:
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            below = self._entries(prefix)
            if prefix and any(entry.name == WORKSPACE_FILE for entry in below):
                yield f"{prefix}{WORKSPACE_FILE}"
                continue
            for entry in below:
                if not _is_folder(entry):
                    if not entry.name.startswith("."):
                        yield f"{prefix}{entry.name}"
                elif not is_passed_over(entry.name) and not entry.is_symlink():
                    waiting.append(f"{prefix}{entry.name}/")

    def _entries(self, prefix: str) -> Sequence[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / prefix) as entries:
                return list(entries)
        except OSError as error:
            message = f"cannot read folder {prefix or self.folder}: {error.strerror}"
            hint = "make it readable, or move it out of the workspace"
            raise ReconcilerError(message, hint=hint) from None

    def read(self, name: str) -> bytes | None:
        """Return the content of a regular file.

        Links out of the folder, and to hidden files, are not followed.
        """
        self._seen.setdefault(name, self._state(name))
        try:
            if name in self._drafts:
                return self._drafts[name].encode()
            # Path.resolve raises RuntimeError for links in a circle, in older Pythons only.
            path = Path(os.path.realpath(self.folder / name))
            if not path.is_relative_to(self._root):
                if leaves_workspace(name):
                    return None
                raise UnreadableFile(f"cannot read {name}: a link out of the workspace")
            if is_hidden(path.relative_to(self._root).as_posix()) and not is_hidden(name):
                raise UnreadableFile(f"cannot read {name}: a link to a hidden file")
            if (self.folder / name).is_symlink() and not (path.exists() or path.is_symlink()):
                raise UnreadableFile(f"cannot read {name}: a broken link")
            return _content(name, path)
        except PermissionError as error:
            raise UnreadableFile(f"cannot read {name}: {error.strerror}") from None
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ELOOP:
                raise UnreadableFile(f"cannot read {name}: links in a circle") from None
            # A name may be too long, or contain a NUL.
            return None

    def check_unchanged(self, selected: Iterable[Iterable[str]]) -> None:
        """Raise FilesChanged if a file is not as it was when read, or was added to the selected."""
        names = {*self._seen, *(name for some in selected for name in some)} - self._drafts.keys()
        if any(self._state(name) != self._seen.get(name) for name in names):
            raise FilesChanged("the files changed while they were loaded")

    def _state(self, name: str) -> tuple[int, ...]:
        """Return what differs after a change of a file, empty for one that does not exist."""
        with suppress(OSError, ValueError):
            about = (self.folder / name).stat()
            return (about.st_size, about.st_mtime_ns, about.st_ino)
        return ()


def _content(name: str, path: Path) -> bytes:
    """Return the content of a regular file of an allowed size."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        what = "a folder, not a" if stat.S_ISDIR(about.st_mode) else "not a"
        raise UnreadableFile(f"cannot read {name}: {what} regular file")
    if about.st_size > MAX_FILE_BYTES:
        raise too_large(name, about.st_size)
    return path.read_bytes()


def workspace_above(folder: Path) -> Path | None:
    """Return the nearest folder above one that has a workspace file, None without one.

    The search ends at the root of a git repository. A file of another user does not count: on a
    shared machine it would decide where the API key is sent.
    """
    here = folder.resolve()
    with suppress(OSError):
        for parent in (here, *here.parents):
            file = parent / WORKSPACE_FILE
            if parent != here and file.is_file() and _is_of_user(file):
                return Path(os.path.relpath(parent, here))
            if (parent / ".git").exists():
                return None
    return None


def _is_of_user(file: Path) -> bool:
    return not hasattr(os, "getuid") or file.stat().st_uid == os.getuid()


def _check_place(folder: Path) -> None:
    """Raise ReconcilerError for a folder that a link in a git repository places outside of it.

    A pull request could otherwise show the files of another folder.
    """
    path = Path(os.path.normpath(folder.absolute()))
    for place in (path, *path.parents):
        if place.is_symlink():
            from reconciler.git.repository import Repository

            owner = Repository.containing(place.parent)
            if owner is not None and not place.resolve().is_relative_to(owner.root):
                message = f"{printable(str(place))} is a link out of its git repository"
                raise ReconcilerError(message, hint="use -C with the folder that it refers to")


class ReadSource:
    """The files of a source. `contents` are the ids of those that were read, by name."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.contents: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """Return every file."""
        return self._source.names()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file."""
        raw = self._source.read(name)
        if raw is not None:
            self.contents[normpath(name)] = content_id(raw)
        return raw


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # Links in a circle.
        return False
