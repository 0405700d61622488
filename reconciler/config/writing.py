"""Puts files into the folder of a workspace: each one whole, or not at all.

All are written beside their places before the first is moved: what the system refuses is known by
then, and an interruption in between leaves everything as it was.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path, PurePosixPath

from reconciler.config.sources import leaves_workspace
from reconciler.errors import ReconcilerError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their paths in the workspace, folders made where they are missing.

    They are put in place in the order given. A file that is there keeps its mode, and a link inside
    the workspace stays a link. Raises ReconcilerError for a path that leads outside, and for what
    the system refuses.
    """
    root = folder.resolve()
    waiting: dict[Path, tuple[str, Path]] = {}
    try:
        for name, text in files.items():
            target = (folder / name).resolve()
            if leaves_workspace(name) or not target.is_relative_to(root):
                raise ReconcilerError(f"{name} is outside the workspace and is not written")
            with _told(name, folder):
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir():
                    raise IsADirectoryError(EISDIR, "it is a folder")
                # Two names may lead to one file, through a link.
                beside = target.with_name(f".{target.name}.{os.getpid()}.{len(waiting)}")
                waiting[beside] = (name, target)
                _write(beside, text, like=target)
        while waiting:
            beside, (name, target) = next(iter(waiting.items()))
            with _told(name, folder):
                beside.replace(target)
            del waiting[beside]
    finally:
        for beside in waiting:
            beside.unlink(missing_ok=True)


def _write(beside: Path, text: str, *, like: Path) -> None:
    mode = stat.S_IMODE(like.stat().st_mode) if like.exists() else None
    # A file that is private must not be readable while it is on its way.
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    if mode is not None:
        beside.chmod(mode)


@contextmanager
def _told(name: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror
        above = [
            each.as_posix()
            for each in PurePosixPath(name).parents
            if each.name and (folder / each).exists() and not (folder / each).is_dir()
        ]
        if above:
            why = f"{above[0]} is a file, not a folder"
        raise ReconcilerError(f"{name} can't be written: {why}") from None
