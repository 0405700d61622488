"""`apply --mark`: record the commit that was applied completely; refuse to undo it by accident."""

from __future__ import annotations

from contextlib import suppress

from reconciler.commands.history import WorkspaceHistory
from reconciler.commands.options import PlanRequest
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, GitUnavailable, ReconcilerError, StalePlan
from reconciler.model.policy import Selection
from reconciler.model.text import listed
from reconciler.workspace.git.base import REMOTE, trusted_branch

_MOST_LISTED = 5


def check_before(
    session: Session, request: PlanRequest, *, selection: Selection, mark: bool, rollback: bool
) -> None:
    """Check what can be checked before a run sends anything.

    `selection` is that of the plan.

    Raises:
        BadUsage: `mark` with a plan of a part of the environment, or without git.
        StalePlan: HEAD lacks the applied commit, and `rollback` is not set.
        ReconcilerError: `mark`, and HEAD is not what would be applied.
        GitUnavailable.

    """
    if mark and request.no_base:
        raise BadUsage("--mark and --no-base exclude each other")
    if mark and selection.partial:
        raise BadUsage(
            "--mark records a whole environment; omit --target, --exclude, --kind and --project"
        )
    if mark:
        _check_markable(session.required_history())
    if not (request.no_base or rollback):
        _check_direction(session.history)


def mark(session: Session) -> str:
    """Record HEAD as the applied commit of the environment, and return the reference.

    Call it after a complete run, once the second plan is empty. Nothing is recorded if the push
    fails, so that the next run starts from the former commit.

    Raises GitUnavailable.
    """
    history = session.required_history()
    repository, applied, ref = history.repository, history.applied, history.ref
    former = applied.commit if applied is not None and applied.ref == ref else None
    head = _head(history)
    if former == head:
        return ref
    if REMOTE in repository.remotes:
        try:
            repository.push(REMOTE, ref, head, former)
        except GitUnavailable as error:
            raise GitUnavailable(
                f"applied, but the applied commit {head[:7]} was not recorded: {error.message}",
                hint=f"fetch with `git fetch {REMOTE} '+{ref}:{ref}'`, and apply again",
            ) from None
    repository.update_ref(ref, head, former)
    return ref


def record(session: Session) -> None:
    """Record HEAD as what was applied here, under the conditions of a mark, if no remote exists.

    No user asked for it, so a problem is not reported: the next plan starts from the former commit.
    """
    with suppress(ReconcilerError):
        history = session.required_history()
        if (ref := history.local_ref) is not None:
            _check_markable(history)
            history.repository.update_ref(ref, _head(history), history.repository.tip(ref))


def _check_markable(history: WorkspaceHistory) -> None:
    head = _head(history)
    if files := history.uncommitted():
        raise ReconcilerError(
            f"--mark records HEAD, but these files differ from it: {listed(files, _MOST_LISTED)}; "
            "nothing was sent",
            hint="commit or restore them, or omit --mark",
        )
    trusted = trusted_branch(history.repository, history.environ)
    if trusted is not None and not history.repository.is_ancestor(head, trusted.commit):
        raise ReconcilerError(
            f"--mark records HEAD, but {trusted.ref} does not contain it; nothing was sent",
            hint="push or merge it first, or omit --mark",
        )


def _check_direction(history: WorkspaceHistory | None) -> None:
    applied = history.applied if history is not None else None
    is_mark = applied is not None and history is not None and applied.ref == history.ref
    if applied is not None and is_mark and applied.outside is None and not applied.is_ancestor:
        raise StalePlan(
            f"the applied commit {applied.commit[:7]} ({applied.ref}) is not an ancestor of HEAD; "
            "nothing was sent",
            hint="check out a commit that contains it, or use --rollback to apply an older one",
        )


def _head(history: WorkspaceHistory) -> str:
    if history.head is None:
        raise GitUnavailable("the git repository has no commit")
    return history.head
