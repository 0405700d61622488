"""What a run that sends changes holds and writes: the lock of an organization, outputs, its end."""

from __future__ import annotations

import getpass
import os
import platform
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from reconciler.applying.log import AuditLog, Bus, ByteStream, Output, write_line
from reconciler.commands.workspace import Runtime
from reconciler.errors import GitUnavailable, ReconcilerError
from reconciler.git.ci import job_url_of
from reconciler.model.event import Ended, Noted, RunInfo
from reconciler.model.plan import Plan
from reconciler.model.redaction import Mask
from reconciler.model.settings import Connection
from reconciler.model.values import Address
from reconciler.service.transport import Transport
from reconciler.version import __version__

_ACTORS = (
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_REQUESTEDFOR",
    "BUILDKITE_BUILD_CREATOR",
    "CIRCLE_USERNAME",
)


class Verification(Struct, frozen=True):
    """The second plan, None if it was not made; `error` says why it could not be made.

    It judges the changes of the run, whose addresses are `done`. What else it has is new.
    """

    left: Plan | None = None
    error: ReconcilerError | None = None
    done: frozenset[Address] = frozenset()

    @property
    def passed(self) -> bool | None:
        """Whether no change of the run is left, None if the second plan was not requested."""
        if self.error is not None:
            return False
        if self.left is None:
            return None
        return self.done.isdisjoint(change.address for change in self.left.effective)

    @property
    def is_empty(self) -> bool:
        """Whether the second plan was made and has no change at all."""
        return self.left is not None and self.left.empty


class Applied(Struct, frozen=True):
    """How an apply ended.

    recorded, record_problem
        The reference of the inventory, or why it was not written.
    problems
        The outputs that are incomplete, a line for each.
    """

    plan: Plan
    ended: Ended
    verification: Verification
    calls: int
    recorded: str | None = None
    record_problem: GitUnavailable | None = None
    problems: tuple[str, ...] = ()


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
) -> Iterator[Bus]:
    """Yield the listener of a run.

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
        yield Bus(listeners, mask=mask, now=runtime.now, run=run)


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

    folder = Path(tempfile.gettempdir()) / f"reconciler-{_user_id()}"
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
    if folder.is_symlink() or folder.stat().st_uid != _user_id():
        raise PermissionError(0, "it belongs to another user")


def _user_id() -> int:
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
