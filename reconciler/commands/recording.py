"""A run that sends changes: its lock on this machine, and its outputs."""

from __future__ import annotations

import getpass
import os
import platform
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from reconciler.applying.events import AuditLog, Bus, ByteStream, Output, write_line
from reconciler.client import Transport
from reconciler.commands.runtime import Runtime
from reconciler.errors import ReconcilerError
from reconciler.model.connection import Connection
from reconciler.model.event import RunInfo
from reconciler.model.plan import Change
from reconciler.model.redaction import Mask
from reconciler.version import __version__
from reconciler.workspace.git.ci import job_url_of

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_PAUSE = 3.0
"""Seconds between two attempts to take the lock."""
_ACTORS = (
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_REQUESTEDFOR",
    "BUILDKITE_BUILD_CREATOR",
    "CIRCLE_USERNAME",
)


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


class Outputs(Struct, frozen=True):
    """Where the events of a run go, besides progress: the audit log and a stream.

    `reason` is why a person started it.
    """

    log_file: Path | None = None
    stream: ByteStream | None = None
    reason: str | None = None


@contextmanager
def recording(
    outputs: Outputs,
    runtime: Runtime,
    mask: Mask,
    *,
    masked: Callable[[], Mapping[str, Change]] = dict,
) -> Iterator[Bus]:
    """Yield the listener of a run. `masked` returns its changes that are masked already, by id.

    Raises ReconcilerError if the log can't be opened.
    """
    with ExitStack() as stack:
        listeners = []
        if outputs.log_file is not None:
            log = stack.enter_context(closing(AuditLog(outputs.log_file)))
            name = f"the audit log {outputs.log_file}"
            listeners.append(Output(name, log, required=True, lost=log.lost))
        if outputs.stream is not None:
            write = partial(write_line, outputs.stream)
            listeners.append(Output("the standard output", write, required=True))
        listeners.append(Output.of("progress", runtime.listen))
        reason = mask(outputs.reason) if outputs.reason is not None else None
        run = replace(run_info(runtime.environ), reason=reason)
        yield Bus(listeners, mask=mask, now=runtime.now, run=run, masked=masked)


def run_info(environ: Mapping[str, str]) -> RunInfo:
    """Return a new run, with the user, the machine and the CI job of this process."""
    return RunInfo(
        str(uuid4()),
        __version__,
        platform.node(),
        user=_user(),
        actor=next((environ[name] for name in _ACTORS if environ.get(name)), None),
        job_url=job_url_of(environ),
    )


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A container may run with an id that no user has.
        return None
