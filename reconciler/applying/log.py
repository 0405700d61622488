"""Pass the events of a run on, masked once and numbered, and write them to the audit log."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from io import FileIO
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import BinaryIO, Protocol, TypeAlias, cast

from msgspec import Struct, field

from reconciler.errors import ReconcilerError
from reconciler.model.event import Event, Listener, Record, RunInfo
from reconciler.model.redaction import Mask, masked_in

RecordListener: TypeAlias = Callable[[Record], None]
# A link in a checkout could name any file. A FIFO without a reader would block. Windows would write
# other line ends in text mode.
_CAREFULLY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


class Output(Struct, frozen=True):
    """A listener of a run."""

    name: str
    """For messages."""
    write: RecordListener
    required: bool = False
    """Whether a run does not start if its first event can't be written."""
    lost: Callable[[], str | None] = lambda: None
    """Return what happened to events that were written, None if they are still there."""

    @classmethod
    def of(cls, name: str, listener: Listener) -> Output:
        """Return a listener that needs the event only."""
        return cls(name, lambda record: listener(record.event))


class Bus(Struct):
    """The listener to which a run sends its events, and which passes them on to its outputs.

    An output that fails gets no more events; the run continues. `problems` reports it.

    Raises on the first event:
        ReconcilerError: a required output can't be written; nothing was sent.

    """

    outputs: Sequence[Output]
    mask: Mask
    now: Callable[[], datetime]
    run: RunInfo
    _sequence: int = 0
    _failures: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Pass an event on to every output that has not failed."""
        self._sequence += 1
        time = self.now().isoformat()
        record = Record(self.run, self._sequence, time, masked_in(event, self.mask))
        for output in self.outputs:
            if output.name not in self._failures:
                self._pass(record, output)

    def _pass(self, record: Record, output: Output) -> None:
        try:
            output.write(record)
        except Exception as error:  # noqa: BLE001 - no listener may end a run
            reason = _reason(error)
            if output.required and record.sequence == 1:
                raise ReconcilerError(
                    f"{output.name} can't be written: {reason}; nothing was sent"
                ) from None
            self._failures[output.name] = (record.sequence, reason)

    @property
    def problems(self) -> tuple[str, ...]:
        """What the outputs lack, a line for each output that failed."""
        missing = tuple(
            f"{name} is incomplete: {reason}; "
            f"{self._sequence - first + 1} of {self._sequence} events are missing"
            for name, (first, reason) in self._failures.items()
        )
        lost = ((output.name, output.lost()) for output in self.outputs)
        return missing + tuple(f"{name} is incomplete: {reason}" for name, reason in lost if reason)


def _reason(error: Exception) -> str:
    """Return why an output failed: the text of the system, or the name of the error."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or type(error).__name__


class ByteStream(Protocol):
    """A stream of bytes that is written to."""

    def write(self, data: bytes, /) -> int | None:
        """Write bytes and return how many. Raises OSError."""
        ...

    def flush(self) -> None:
        """Write what is buffered. Raises OSError."""
        ...


class AuditLog:
    """A listener that appends lines to a file, which only its owner can read.

    Raises ReconcilerError if the file can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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

    def lost(self) -> str | None:
        """Return what happened to the lines that were written, None if they are in the file."""
        status = os.fstat(self._file.fileno())
        try:
            is_there = os.path.samestat(status, self._path.stat())
        except OSError:
            is_there = False
        if not is_there:
            return "it was removed or replaced during the run"
        # Lines are appended: the position is the size at the last write.
        is_cut = S_ISREG(status.st_mode) and status.st_size < self._file.tell()
        return "it was truncated during the run" if is_cut else None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_line(stream: ByteStream, record: Record) -> None:
    """Write the line of an event and flush it. Raises OSError."""
    # Every command imports this package, and few need the codec.
    from reconciler.model.decoding import encode_line

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
    status = os.fstat(descriptor)
    if S_ISREG(status.st_mode):
        try:
            _restrict(descriptor, status)
            if status.st_size and not _ends_with_line(path):
                file.write(b"\n")
        except OSError:
            file.close()
            raise
    return file


def _restrict(descriptor: int, status: os.stat_result) -> None:
    """Let only its owner read and write a file that exists.

    Raises OSError for another's file, and for one with another name, which may be anywhere.
    """
    if status.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has another name (hard link)")
    if hasattr(os, "fchmod") and S_IMODE(status.st_mode) & 0o077:
        os.fchmod(descriptor, 0o600)


def _ends_with_line(path: Path) -> bool:
    """Return whether a file ends with a line break. A killed run leaves none. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    with FileIO(descriptor, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
