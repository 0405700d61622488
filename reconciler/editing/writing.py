"""Change files: all are written as drafts before the first one is moved into place.

A kill between two moves leaves some files old and some new, as `git diff` shows.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EINVAL, EISDIR, ELOOP
from pathlib import Path, PurePosixPath
from posixpath import normpath

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.files.source_lines import Side, side_of
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import parse
from reconciler.model.text import quoted
from reconciler.paths import leaves_workspace


class FileChange(Struct, frozen=True):
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side


def changed_files(folder: Path, texts: Mapping[str, str], *, write: bool) -> dict[str, FileChange]:
    """Return the changes that new texts are, secrets masked where they are shown.

    Writes them if `write`, all or none. Raises ReconcilerError for a file that can't be written.
    """
    source = FolderSource(folder)
    changes = {
        name: FileChange(_side(name, source.read(name) or b""), _side(name, text.encode()))
        for name, text in texts.items()
    }
    if write:
        write_files(folder, texts)
    return changes


def _side(name: str, raw: bytes) -> Side:
    return side_of(parse(raw, name, DiagnosticCollector()))


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, replacing an older one.

    Raises OSError, also for a path that is a link, a device or a pipe.
    """
    check_regular(path)
    draft = draft_beside(path)
    try:
        _write(draft, data, mode=0o600)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their paths in the workspace, in the given order, and create folders.

    Existing files keep their mode, and new ones have that of the umask. A link to a file of the
    workspace stays a link. Raises ReconcilerError for other links, for a path outside the
    workspace, and for errors of the system.
    """
    drafts: dict[Path, tuple[str, Path]] = {}
    for name in files:
        with _explained(name, folder):
            target = _target(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                raise IsADirectoryError(EISDIR, "it is a folder")
            # Two names may lead to one file, through a link.
            drafts[draft_beside(target)] = (name, target)
    try:
        for draft, (name, target) in drafts.items():
            with _explained(name, folder):
                mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
                _write(draft, files[name].encode(), mode=mode)
        for draft, (name, target) in drafts.items():
            with _explained(name, folder):
                draft.replace(target)
    finally:
        for draft in drafts:
            # On a read-only file system, this fails also for a file that does not exist.
            with suppress(OSError):
                draft.unlink()


def _target(folder: Path, name: str) -> Path:
    """Return the file to write. Raises ReconcilerError for one that a link leads to, and OSError.

    A link is followed only to an existing, visible file of the workspace.
    """
    root, target = folder.resolve(), Path(os.path.realpath(folder / name))
    if leaves_workspace(name) or not target.is_relative_to(root):
        raise ReconcilerError(f"{name} is outside the workspace")
    # Links in a circle are an error. Path.resolve reports them in older Pythons only.
    with suppress(FileNotFoundError):
        target.stat()
    reached = target.relative_to(root)
    is_hidden = any(part.startswith(".") for part in reached.parts)
    if reached.as_posix() != normpath(name) and (is_hidden or not target.is_file()):
        message = f"{name} is not written: a symbolic link leads to {quoted(reached.as_posix())}"
        raise ReconcilerError(message, hint="replace the link with a file or folder")
    return target


def check_regular(path: Path) -> None:
    """Raise OSError if the path exists and is not a regular file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise OSError(ELOOP, "it is a symbolic link")
    if not stat.S_ISREG(mode):
        raise OSError(EINVAL, "it is not a regular file")


def _write(path: Path, data: bytes, *, mode: int | None) -> None:
    """Write a new file. Without a mode, it has that of the umask."""
    # A private file must not be readable before it is complete.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o666 if mode is None else 0o600), "wb") as file:
        file.write(data)
    if mode is not None:
        path.chmod(mode)


@contextmanager
def _explained(name: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror
        for parent in PurePosixPath(name).parents:
            if parent.name and (folder / parent).exists() and not (folder / parent).is_dir():
                reason = f"{parent} is a file, not a folder"
        raise ReconcilerError(f"{name} can't be written: {reason}") from None


def draft_beside(path: Path) -> Path:
    """Return a new hidden file beside a file.

    The name of the file is not part of it, since it may be as long as names can be. Process ids
    are no part of it either: they are the same in many containers.
    """
    return path.with_name(f".reconciler.{os.urandom(8).hex()}")
