"""Files that a caller names: read, written, and located in their repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.editing import writing
from reconciler.errors import ReconcilerError


def read_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises ReconcilerError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReconcilerError(f"{path} can't be read: {error.strerror}") from None


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, or nothing. Raises ReconcilerError."""
    try:
        writing.write_private(path, data)
    except OSError as error:
        raise ReconcilerError(
            f"{path} can't be written: {error.strerror}",
            hint="choose another file",
        ) from None


def path_in_repository(folder: Path, environ: Mapping[str, str]) -> str:
    """Return the path of a folder from the root of its repository, "" for the root itself.

    The root is GITHUB_WORKSPACE if it contains the folder; otherwise the nearest parent with a
    `.git`; otherwise the current folder.
    """
    here = folder.resolve()
    workflow = environ.get("GITHUB_WORKSPACE")
    roots = [Path(workflow).resolve()] if workflow else []
    roots += [parent for parent in (here, *here.parents) if (parent / ".git").exists()]
    for root in (*roots, Path.cwd()):
        if here.is_relative_to(root):
            return "" if here == root else here.relative_to(root).as_posix()
    return ""
