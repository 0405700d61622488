"""Puts files into the folder of a workspace: each one whole, or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from reconciler.config.sources import leaves_workspace
from reconciler.errors import ReconcilerError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their paths in the workspace, folders made where they are missing.

    A file that is there keeps its mode, and a link inside the workspace stays a link. Raises
    ReconcilerError for a path that leads outside, and for what the system refuses.
    """
    root = folder.resolve()
    for name, text in files.items():
        path = folder / name
        if leaves_workspace(name) or not path.resolve().is_relative_to(root):
            raise ReconcilerError(f"{name} is outside the workspace and is not written")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path.resolve(), text)
        except OSError as error:
            raise ReconcilerError(f"{name} can't be written: {error.strerror}") from None


def _replace(target: Path, text: str) -> None:
    """Written beside and moved over, so that an interruption leaves the old or the new file."""
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    # A file that is private must not be readable while it is on its way.
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if mode is not None:
            beside.chmod(mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
