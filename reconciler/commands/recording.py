"""The outputs of a run that sends changes."""

from __future__ import annotations

import getpass
import platform
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from reconciler.applying.log import AuditLog, Bus, ByteStream, Output, write_line
from reconciler.commands.runtime import Runtime
from reconciler.git.ci import job_url_of
from reconciler.model.event import RunInfo
from reconciler.model.redaction import Mask
from reconciler.version import __version__

_ACTORS = (
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_REQUESTEDFOR",
    "BUILDKITE_BUILD_CREATOR",
    "CIRCLE_USERNAME",
)


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
