"""Write several files as one: a command that is killed is finished or rolled back by the next one.

The journal is a hidden file in the folder. Its first line names the drafts and the files that they
replace, before the first draft is written. A second line follows when all drafts are complete: from
then on they are moved into place, else they are removed. It has the inodes of the drafts, so that
a journal in a repository can't put the content of hidden files into others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import orjson

from reconciler.errors import ReconcilerError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None  # type: ignore[assignment]

NAME = ".reconciler.journal"
_DRAFT = re.compile(r"\.reconciler\.[0-9a-f]{16}")
_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


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
    descriptor = os.open(folder / NAME, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
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
        descriptor = os.open(folder / NAME, _FLAGS)
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
            hint=f"compare the files with git, then remove {folder / NAME}",
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
        (folder / NAME).unlink(missing_ok=True)
    finally:
        os.close(descriptor)
