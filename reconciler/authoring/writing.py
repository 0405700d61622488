"""Write files atomically: all are written as drafts before the first one is moved into place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path, PurePosixPath

from reconciler.errors import ReconcilerError
from reconciler.workspace.sources import leaves_workspace


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, replacing an older one. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        _write(draft, data, mode=0o600)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their paths in the workspace, in the given order, and create folders.

    Existing files keep their mode, and links inside the workspace stay links. Raises
    ReconcilerError for a path outside the workspace, and for errors of the system.
    """
    root = folder.resolve()
    drafts: dict[Path, tuple[str, Path]] = {}
    try:
        for name, text in files.items():
            target = (folder / name).resolve()
            if leaves_workspace(name) or not target.is_relative_to(root):
                raise ReconcilerError(f"{name} is outside the workspace")
            with _explained(name, folder):
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir():
                    raise IsADirectoryError(EISDIR, "it is a folder")
                # Two names may lead to one file, through a link.
                draft = target.with_name(f".{target.name}.{os.getpid()}.{len(drafts)}")
                drafts[draft] = (name, target)
                mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
                _write(draft, text.encode(), mode=mode)
        while drafts:
            draft, (name, target) = next(iter(drafts.items()))
            with _explained(name, folder):
                draft.replace(target)
            del drafts[draft]
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _write(path: Path, data: bytes, *, mode: int | None) -> None:
    """Write a new file, with the default mode for None."""
    # A private file must not be readable before it is complete.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666 if mode is None else 0o600)
    with os.fdopen(handle, "wb") as file:
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
