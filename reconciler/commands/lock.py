"""An advisory lock: one apply at a time to one organization on one machine.

Appliers on other machines are not seen; the checks before and after each create are for them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from reconciler.client import Transport
from reconciler.errors import ReconcilerError
from reconciler.model.connection import Connection

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_PAUSE = 3.0
"""Seconds between two attempts."""


@asynccontextmanager
async def only_apply(transport: Transport) -> AsyncIterator[None]:
    """Hold the lock of an organization; wait while another process holds it.

    The operating system releases the lock when the process ends, however it ends.

    Raises:
        Interrupted: a stop was requested while waiting.
        ReconcilerError: the lock file can't be opened.

    """
    if fcntl is None:
        yield
        return
    descriptor = _open(_path(transport.connection))
    try:
        while not _locked(descriptor):
            reason = f"another apply on this machine (pid {_owner(descriptor)})"
            await transport.pause(_PAUSE, reason)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _path(connection: Connection) -> Path:
    """Return the lock file, in a folder of the user's own below the temporary folder."""
    owner = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"reconciler-{owner}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != owner:
            raise ReconcilerError(f"{folder} belongs to another user; nothing was sent")
    except OSError as error:
        raise ReconcilerError(
            f"can't create the folder of the lock, {folder}: {error.strerror}; nothing was sent",
            hint="set TMPDIR to a folder that you can write to",
        ) from None
    scope = f"{connection.base_url.rstrip('/')}\n{connection.organization}"
    return folder / f"{sha256(scope.encode()).hexdigest()[:32]}.lock"


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise ReconcilerError(
            f"can't open the lock {path}: {error.strerror}; nothing was sent",
            hint="set TMPDIR to a folder that you can write to",
        ) from None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(descriptor: int) -> str:
    text = os.pread(descriptor, 20, 0).decode(errors="replace")
    return text if text.isdecimal() else "unknown"
