"""The audit log: JSON lines with the plan, every request and the result of every change."""

from __future__ import annotations

import errno
import os
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, cast

from reconciler.errors import ReconcilerError
from reconciler.model.event import Record

# A link in a checkout could name any file. A FIFO without a reader would block.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class AuditLog:
    """A listener that appends lines to a file, which only its owner can read if it is new.

    Raises ReconcilerError if the file can't be opened.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = _open(path)
        except OSError as error:
            reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
            raise ReconcilerError(
                f"{path} can't be written: {reason}; nothing was sent", hint="choose another file"
            ) from None

    def __call__(self, record: Record) -> None:
        """Write one line at once, so that the log of a killed run is complete. Raises OSError."""
        write_line(self._file, record)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_line(stream: BinaryIO, record: Record) -> None:
    """Write the line of an event and flush it. Raises OSError."""
    # Every command imports this package, and few need the codec.
    from reconciler.model.codec.event import encode_line

    line = encode_line(record)
    while line:
        written = stream.write(line)
        if not written:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        line = line[written:]
    stream.flush()


def _open(path: Path) -> BinaryIO:
    """Open a file to append to it, after the end of a line. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _CAREFULLY, 0o600)
    file = cast("BinaryIO", FileIO(descriptor, "ab"))
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    if not _ends_with_line(path, descriptor):
        file.write(b"\n")
    return file


def _ends_with_line(path: Path, descriptor: int) -> bool:
    """Return whether the file is empty or ends with a line break. A killed run leaves none."""
    status = os.fstat(descriptor)
    if not S_ISREG(status.st_mode) or not status.st_size:
        return True
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
