"""Choose the base: the commit that a plan compares the configuration with."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.errors import GitUnavailable
from reconciler.model.text import quoted
from reconciler.workspace.git.branches import _REMOTES
from reconciler.workspace.git.ci import before_push_of, is_job, target_of
from reconciler.workspace.git.repository import HEAD, Repository

_UPSTREAM = "@{upstream}"
_REVISION = frozenset("~^@{}:")
"""Characters of expressions such as origin/main~3, which cannot be fetched."""


class BaseCommit(Struct, frozen=True):
    """The base, and the short name of the reference that leads to it, None for a mere commit."""

    id: str
    ref: str | None = None


def base_of_ref(repository: Repository, head: str | None, ref: str) -> BaseCommit:
    """Return the merge base of the commit of HEAD and a reference. Raises GitUnavailable."""
    if head is None:
        raise GitUnavailable("the git repository has no commit", hint="commit, or omit --base")
    if ref == HEAD:
        return BaseCommit(head, HEAD)
    return _merge_base(repository, head, ref)


def default_base(
    repository: Repository, head: str, environ: Mapping[str, str], branches: Mapping[str, str]
) -> BaseCommit:
    """Return the base if none is named or recorded.

    It is the merge base of HEAD and the first of these that exists: the target of the pull request,
    the commit before the push, the nearest of `branches`, outside of jobs the upstream branch. It
    is HEAD without any, or if they contain it. A commit before the push that is on the way from the
    nearest branch does not count: what was pushed before it is not merged either.

    Raises GitUnavailable if a commit that the CI job names cannot be read.
    """
    if (target := target_of(environ)) is not None:
        return _merge_base(repository, head, target)
    nearest = _nearest(repository, head, branches)
    if (before := before_push_of(environ)) is not None:
        pushed = _merge_base(repository, head, before)
        if nearest is None or not repository.is_ancestor(nearest.id, pushed.id):
            return pushed
    if nearest is None and branches and repository.is_shallow:
        return _merge_base(repository, head, next(iter(branches)))  # Which raises.
    if nearest is None and not is_job(environ):
        upstream = repository.commit(_UPSTREAM)
        nearest = _nearest(repository, head, {_UPSTREAM: upstream} if upstream else {})
    return nearest if nearest is not None and nearest.id != head else BaseCommit(head, HEAD)


def _nearest(repository: Repository, head: str, branches: Mapping[str, str]) -> BaseCommit | None:
    """Return the merge base with one of some branches that is nearest to HEAD, None without any."""
    nearest = None
    for ref, tip in branches.items():
        base = repository.merge_base(head, tip)
        if base is not None and (nearest is None or repository.is_ancestor(nearest.id, base)):
            nearest = BaseCommit(base, repository.short_name(ref))
    return nearest


def _commit_of_ref(repository: Repository, ref: str) -> BaseCommit:
    """Return the commit that a reference names. Raises GitUnavailable."""
    if ref.startswith("-"):
        raise GitUnavailable(f"invalid git reference {quoted(ref)}")
    # A tag named origin/main must not be used instead of the branch.
    for name in (ref,) if ref.startswith("refs/") else (f"{_REMOTES}{ref}", ref):
        commit = repository.commit(name)
        if commit is not None:
            return BaseCommit(commit, repository.short_name(name))
    raise GitUnavailable(f"unknown git commit {quoted(ref)}", hint=_fetch_hint(repository, ref))


def shallow_hint() -> str:
    """Return how to get the history that a shallow clone lacks."""
    return (
        "fetch the history of this shallow clone: `git fetch --unshallow`, or fetch-depth: 0 in "
        "the checkout step of the job"
    )


def _merge_base(repository: Repository, head: str, ref: str) -> BaseCommit:
    """Return the merge base of HEAD and a reference. Raises GitUnavailable without one."""
    named = _commit_of_ref(repository, ref)
    base = repository.merge_base(head, named.id)
    if base is None:
        hint = shallow_hint() if repository.is_shallow else "use --base with an ancestor of HEAD"
        raise GitUnavailable(f"no common ancestor of HEAD and {quoted(ref)}", hint=hint)
    return BaseCommit(base, named.ref)


def _fetch_hint(repository: Repository, ref: str) -> str:
    if repository.is_shallow:
        return shallow_hint()
    remote, _, branch = ref.removeprefix(_REMOTES).partition("/")
    if branch and _REVISION.isdisjoint(branch) and remote in repository.remotes:
        return f"fetch it: git fetch {remote} {branch}"
    return "use a commit, tag or branch of this clone, or fetch it"
