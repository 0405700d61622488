"""The lock that lets one run at a time send changes to an organization from this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from reconciler.errors import ReconcilerError
from reconciler.model.event import Noted
from reconciler.model.settings import Connection
from reconciler.service.transport import Transport

_PAUSE = 1.0
"""Seconds between two attempts to take the lock."""


@asynccontextmanager
async def only_apply(transport: Transport) -> AsyncIterator[None]:
    """Hold the lock of an organization; wait while another process holds it, and say so.

    The operating system releases the lock when the process ends, however it ends.

    Raises:
        Interrupted: a stop was requested while waiting.
        ReconcilerError: the lock can't be made.

    """
    # Few commands need it (15 ms).
    from filelock import FileLock, Timeout

    folder = Path(tempfile.gettempdir()) / f"reconciler-{_user()}"
    try:
        _make(folder)
        path = folder / f"{_name(transport.connection)}.lock"
        # A file of its own, since a locked one cannot be read on Windows.
        holder = path.with_suffix(".pid")
        lock = FileLock(path, mode=0o600)
        is_noted = False
        while not lock.is_locked:
            try:
                lock.acquire(blocking=False)
            except Timeout:
                if not is_noted:
                    is_noted = True
                    other = f"another run on this machine that sends changes ({_pid_in(holder)})"
                    transport.emit(Noted(f"waiting for {other}", important=True))
                await transport.pause(_PAUSE, "another run on this machine")
        holder.write_text(str(os.getpid()), encoding="ascii")
    except OSError as error:
        raise ReconcilerError(
            f"can't make the lock in {folder}: {error.strerror}; nothing was sent",
            hint="set TMPDIR to a folder that you can write to",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _make(folder: Path) -> None:
    """Make a folder that only this user can write to. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != _user():
        raise PermissionError(0, "it belongs to another user")


def _user() -> int:
    """Return the id of the user, 0 on Windows, where each has a temporary folder."""
    return os.getuid() if hasattr(os, "getuid") else 0


def _name(connection: Connection) -> str:
    scope = f"{connection.base_url.rstrip('/')}\n{connection.organization}"
    return sha256(scope.encode()).hexdigest()[:32]


def _pid_in(holder: Path) -> str:
    try:
        return f"pid {int(holder.read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        return "pid unknown"
