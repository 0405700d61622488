"""The use case `doctor`: check the configuration, the way to the service, the key and git.

Every check is independent of the others. Nothing is written, and no check prints the API key.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from platform import python_version

from msgspec.structs import replace

from reconciler.commands.loading import deciding_base
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import GitUnavailable, ReconcilerError
from reconciler.model.connection import ClientOptions
from reconciler.model.health import Check, HealthReport
from reconciler.model.text import several
from reconciler.operations.diagnosing_access import access_checks
from reconciler.operations.diagnosing_network import network_checks
from reconciler.version import __version__
from reconciler.workspace.git.repository import Repository
from reconciler.workspace.sources import WORKSPACE_FILE

_QUICK = ClientOptions(timeout=10.0, max_wait=5.0, retry_for=0.0)
_NO_FILES = {WORKSPACE_FILE: "version: 1\n"}
_PACKAGE = "posthog-reconciler"
_LocalCheck = Callable[[WorkspaceOptions, Runtime], Iterator[Check]]


async def diagnose(options: WorkspaceOptions, runtime: Runtime) -> HealthReport:
    """Return the result of every check. Works without a workspace."""
    quick = replace(options, client=options.client.over(_QUICK))
    session, configuration = _configuration(quick, runtime)
    checks = [_version(), configuration, *await _service_checks(session, quick, runtime)]
    for name, check in _LOCAL.items():
        checks += _guarded(name, check, quick, runtime)
    return HealthReport(tuple(checks))


def _version() -> Check:
    text = f"reconciler {__version__}, Python {python_version()}, {sys.platform}"
    return Check.fine("version", text)


def _configuration(options: WorkspaceOptions, runtime: Runtime) -> tuple[Session | None, Check]:
    """Load the workspace. Return None if there is none, or if it has errors."""
    name = "configuration"
    if not (options.folder / WORKSPACE_FILE).exists():
        text = f"no {WORKSPACE_FILE} in this folder: variables of the environment are used"
        return None, Check.fine(name, text)
    try:
        session = Session.open(options, runtime)
    except InvalidConfiguration as error:
        return None, Check.failed(name, error.message, "run `reconciler validate`")
    except ReconcilerError as error:
        return None, Check.failed(name, error.message, error.hint or "")
    desired = session.loaded.desired
    text = f"{several(len(desired.resources), 'resource')} in environment {desired.environment}"
    count = len(session.loaded.diagnostics)
    if count:
        warnings = f"{text}; {several(count, 'warning')}"
        return session, Check.warning(name, warnings, "run `reconciler validate`")
    return session, Check.fine(name, text)


async def _service_checks(
    session: Session | None, options: WorkspaceOptions, runtime: Runtime
) -> list[Check]:
    """Return the checks of the service. Without a usable workspace, variables name it."""
    name = "connection"
    try:
        used = session or _session_of_variables(options, runtime)
        base_url = used.loaded.reachable().base_url
    except InvalidConfiguration as error:
        first = error.diagnostics[0]
        return [Check.failed(name, first.message, first.hint or "")]
    except ReconcilerError as error:
        return [Check.failed(name, error.message, error.hint or "")]
    return [
        *await network_checks(used, base_url),
        *await access_checks(used, is_workspace=session is not None),
    ]


def _session_of_variables(options: WorkspaceOptions, runtime: Runtime) -> Session:
    with tempfile.TemporaryDirectory() as empty:
        return Session.open(
            replace(options, folder=Path(empty), environment=None), runtime, drafts=_NO_FILES
        )


def _guarded(
    name: str, check: _LocalCheck, options: WorkspaceOptions, runtime: Runtime
) -> list[Check]:
    """Return the results of a check; an error is one."""
    try:
        return list(check(options, runtime))
    except ReconcilerError as error:
        return [Check.failed(name, error.message, error.hint or "")]


def _trusted(options: WorkspaceOptions, runtime: Runtime) -> Iterator[Check]:
    """Check which files decide where the key is sent."""
    name = "trusted base"
    base = deciding_base(options, runtime.environ, interactive=runtime.interactive)
    if base is None:
        yield Check.fine(name, "the files of this folder decide where the key is sent")
    elif base.problem:
        yield Check.warning(name, f"none: {base.problem}", base.fix)
    else:
        yield Check.fine(name, f"{base.branch} at {(base.commit or '')[:7]}")


def _git(options: WorkspaceOptions, runtime: Runtime) -> Iterator[Check]:
    """Check whether a git base can be read."""
    name = "git"
    repository = Repository.containing(options.folder)
    if repository is None:
        yield Check.warning(
            name,
            "this folder is not in a git repository: removed resources are not detected",
            "commit the workspace to a git repository",
        )
        return
    head = repository.head()
    if head is None:
        yield Check.warning(name, "no commit yet", "commit the workspace")
    elif repository.is_shallow:
        yield Check.warning(
            name,
            f"shallow clone at {head.id[:7]}: the git base may be missing",
            "fetch the history (fetch-depth: 0 in the checkout step)",
        )
    else:
        yield Check.fine(name, f"commit {head.id[:7]}, with its history")
    yield from _applied(options, runtime)


def _applied(options: WorkspaceOptions, runtime: Runtime) -> Iterator[Check]:
    name = "applied commit"
    try:
        session = Session.open(options, runtime)
    except ReconcilerError:
        return
    history = session.history
    try:
        applied = history.applied if history is not None else None
    except GitUnavailable as error:
        yield Check.failed(name, error.message, error.hint or "")
        return
    if applied is None:
        yield Check.fine(name, "none recorded (`apply --mark` records it)")
    elif applied.is_ancestor and applied.outside is None:
        yield Check.fine(name, f"{applied.commit[:7]} ({applied.ref})")
    else:
        where = "HEAD" if not applied.is_ancestor else applied.outside
        yield Check.warning(
            name, f"{applied.commit[:7]} is not part of {where}", "check out the applied branch"
        )


def _lock(_: WorkspaceOptions, __: Runtime) -> Iterator[Check]:
    """Check the folder of the lock that keeps two applies of a machine apart."""
    folder = tempfile.gettempdir()
    if os.access(folder, os.W_OK):
        yield Check.fine("lock", f"{folder} can be written to")
    else:
        fix = "set TMPDIR to a folder that you can write to"
        yield Check.failed("lock", f"{folder} can't be written to", fix)


def _extra(_: WorkspaceOptions, __: Runtime) -> Iterator[Check]:
    """Check whether the packages of the embedded service are installed."""
    name = "embedded service"
    try:
        listed = requires(_PACKAGE) or []
    except PackageNotFoundError:
        listed = []
    needed = [
        requirement.split(">")[0].split(";")[0].strip()
        for requirement in listed
        if "emulator" in requirement.partition(";")[2]
    ]
    missing = [package for package in needed if not _is_installed(package)]
    if missing:
        fix = "pip install 'posthog-reconciler[emulator]', for `demo` and `emulator`"
        yield Check.warning(name, f"not installed: {', '.join(missing)}", fix)
    else:
        yield Check.fine(name, "installed")


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


_LOCAL: Mapping[str, _LocalCheck] = {
    "trusted base": _trusted,
    "git": _git,
    "lock": _lock,
    "embedded service": _extra,
}
