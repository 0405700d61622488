"""Puts files into the folder of a workspace: each one whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reconciler.config.sources import leaves_workspace
from reconciler.errors import ReconcilerError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their paths in the workspace, folders made where they are missing.

    Raises ReconcilerError for a path that leads outside, and for what the system refuses.
    """
    root = folder.resolve()
    for name, text in files.items():
        path = folder / name
        if leaves_workspace(name) or not path.resolve().is_relative_to(root):
            raise ReconcilerError(f"{name} is outside the workspace and is not written")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, text)
        except OSError as error:
            raise ReconcilerError(f"{name} can't be written: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    """Written beside and moved over, so that an interruption leaves the old or the new file."""
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
