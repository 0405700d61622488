"""Write files atomically: all are written as drafts before the first one is moved into place.

A command that is killed is finished or rolled back by the next one. The journal for that is a
hidden file in the folder. Its first line names the drafts and the files that they replace, before
the first draft is written. A second line follows when all drafts are complete: from then on they
are moved into place, else they are removed. It has the inodes of the drafts, so that a journal in a
repository can't put the content of hidden files into others.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EINVAL, EISDIR, ELOOP
from pathlib import Path, PurePosixPath
from posixpath import normpath

import orjson

from reconciler.errors import ReconcilerError
from reconciler.model.text import quoted
from reconciler.workspace.sources import JOURNAL, leaves_workspace

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_DRAFT = re.compile(r"\.reconciler\.[0-9a-f]{16}")
_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


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
    workspace stays a link. If this process is killed, the next command finishes or rolls back.
    Raises ReconcilerError for other links, for a path outside the workspace, and for errors of the
    system.
    """
    root = folder.resolve()
    drafts: dict[Path, tuple[str, Path]] = {}
    for name in files:
        with _explained(name, folder):
            target = _target(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                raise IsADirectoryError(EISDIR, "it is a folder")
            # Two names may lead to one file, through a link.
            drafts[draft_beside(target)] = (name, target)
    if not drafts:
        return
    moves = {draft: target for draft, (_, target) in drafts.items()}
    with _explained(JOURNAL, folder), journal(root, moves) as complete:
        for draft, (name, target) in drafts.items():
            with _explained(name, folder):
                mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
                _write(draft, files[name].encode(), mode=mode)
        complete()
        for draft, (name, target) in drafts.items():
            with _explained(name, folder):
                draft.replace(target)


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
        raise ReconcilerError(
            f"{name} is not written: a symbolic link leads to {quoted(reached.as_posix())}",
            hint="replace the link with a file or folder",
        )
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
        above = [
            parent.as_posix()
            for parent in PurePosixPath(name).parents
            if parent.name and (folder / parent).exists() and not (folder / parent).is_dir()
        ]
        if above:
            reason = f"{above[0]} is a file, not a folder"
        raise ReconcilerError(f"{name} cannot be written: {reason}") from None


def draft_beside(path: Path) -> Path:
    """Return a new hidden file beside a file.

    The name of the file is not part of it, since it may be as long as names can be. Process ids
    are no part of it either: they are the same in many containers.
    """
    return path.with_name(f".reconciler.{os.urandom(8).hex()}")


@contextmanager
def journal(folder: Path, moves: Mapping[Path, Path]) -> Iterator[Callable[[], None]]:
    """Keep a journal of drafts and their files. At its end no draft is left.

    Yields what notes that all drafts are complete: from then on they are moved.

    Raises OSError, and ReconcilerError while another command writes files there.
    """
    settle(folder, wait=True)
    names = [
        [path.relative_to(folder).as_posix() for path in draft_and_file]
        for draft_and_file in moves.items()
    ]
    descriptor = os.open(folder / JOURNAL, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if not _lock(descriptor):
            raise _busy(folder)
        _note(descriptor, names)
        yield lambda: _note(descriptor, [draft.stat().st_ino for draft in moves])
    finally:
        _end(folder, descriptor, moves)


def settle(folder: Path, *, wait: bool = False) -> None:
    """Finish or roll back what a killed command left in a folder.

    Raises ReconcilerError if that is not possible and, with `wait`, while the command still runs.
    """
    try:
        descriptor = os.open(folder / JOURNAL, _FLAGS)
    except OSError:
        return
    if not _lock(descriptor):
        os.close(descriptor)
        if wait:
            raise _busy(folder)
        return
    moves, inodes = _read(folder, descriptor)
    try:
        for (draft, file), inode in zip(moves, inodes, strict=False):
            with suppress(FileNotFoundError):
                if (folder / draft).stat().st_ino == inode:
                    (folder / draft).replace(folder / file)
        _end(folder, descriptor, [folder / draft for draft, _ in moves])
    except OSError as error:
        raise ReconcilerError(
            f"the files of a command that was killed can't be restored: {error.strerror}",
            hint=f"compare the files with git, then remove {folder / JOURNAL}",
        ) from None


def _busy(folder: Path) -> ReconcilerError:
    return ReconcilerError(
        f"another command is writing files in {folder}", hint="run it again when it ended"
    )


def _read(folder: Path, descriptor: int) -> tuple[Sequence[tuple[str, str]], Sequence[int]]:
    """Return the drafts with their files, and their inodes, none unless all were complete.

    A journal that was cut short, or that no command wrote, has none.
    """
    with suppress(ValueError, TypeError, IndexError, OSError):
        lines = os.pread(descriptor, os.fstat(descriptor).st_size, 0).split(b"\n")
        moves = [(str(draft), str(file)) for draft, file in orjson.loads(lines[0])]
        if all(_is_ours(folder, draft, file) for draft, file in moves):
            # What follows the last line break was cut short.
            inodes = orjson.loads(lines[1]) if len(lines) > 2 else []
            return moves, [int(inode) for inode in inodes]
    return (), ()


def _is_ours(folder: Path, draft: str, file: str) -> bool:
    """Return whether a command may have written a draft for a file, which is beside it."""
    names, target = PurePosixPath(draft), PurePosixPath(file)
    root = folder.resolve()
    return bool(
        _DRAFT.fullmatch(names.name)
        and names.parent == target.parent
        and ".." not in target.parts
        and (folder / draft).parent.resolve().is_relative_to(root)
    )


def _lock(descriptor: int) -> bool:
    """Lock the journal while this process lives. Return False if another process has it."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _note(descriptor: int, line: Sequence[object]) -> None:
    os.write(descriptor, orjson.dumps(line) + b"\n")


def _end(folder: Path, descriptor: int, drafts: Iterable[Path]) -> None:
    """Remove the drafts that are left, then the journal. Raises OSError."""
    try:
        for draft in drafts:
            draft.unlink(missing_ok=True)
        (folder / JOURNAL).unlink(missing_ok=True)
    finally:
        os.close(descriptor)
