"""The trusted branch of a repository, and how to get history that a clone lacks."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.errors import BadUsage, GitUnavailable
from reconciler.git.ci import REMOTE_BRANCHES, TRUST_VARIABLE, default_branch_of
from reconciler.git.repository import HEAD, Repository
from reconciler.model.text import quoted


def shallow_hint() -> str:
    """Return how to get the history that a shallow clone lacks."""
    return (
        "fetch the history of this shallow clone: `git fetch --unshallow`, or fetch-depth: 0 in "
        "the checkout step of the job"
    )


class TrustedBranch(Struct, frozen=True):
    """The full name of the trusted branch, and the commit at its tip."""

    ref: str
    commit: str


def trusted_branch(repository: Repository, environ: Mapping[str, str]) -> TrustedBranch | None:
    """Return the trusted branch, None if it is unknown here.

    Raises GitUnavailable if the one of the environment variable does not exist.
    """
    named = environ.get(TRUST_VARIABLE)
    if named and not named.startswith("refs/"):
        raise BadUsage(
            f"{TRUST_VARIABLE} is {quoted(named)}, not a full name",
            hint="use one such as refs/remotes/origin/main",
        )
    ref = named or default_branch_of(environ) or default_branch(repository)
    tip = repository.tip(ref) if ref is not None else None
    if ref is not None and tip is not None:
        return TrustedBranch(ref, tip)
    if named:
        raise GitUnavailable(
            f"the trusted branch {quoted(named)} of {TRUST_VARIABLE} does not exist",
            hint=f"fetch it, or correct {TRUST_VARIABLE}",
        )
    return None


def default_branch(repository: Repository) -> str | None:
    """Return the full name that HEAD of origin names, None if this clone does not know it.

    Whoever can push may make a branch of the name HEAD, which a fetch stores in its place, or a tag
    of its full name. Both name a commit and no branch.
    """
    head = f"{REMOTE_BRANCHES}{HEAD}"
    named = repository.symbolic_target(head)
    return named if named is not None and _is_branch_of(head, named) else None


def _is_branch_of(head: str, named: str) -> bool:
    return named != head and named.startswith(head.removesuffix(HEAD))
