"""The branches of a clone that have a meaning: the trusted one, and those that bases are on."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.errors import BadUsage, GitUnavailable
from reconciler.model.text import quoted
from reconciler.workspace.git.ci import TRUST_VARIABLE, default_branch_of
from reconciler.workspace.git.repository import HEAD, Repository

REMOTE = "origin"
_REMOTES = "refs/remotes/"
_HEADS = "refs/heads/"


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
    ref = named or default_branch_of(environ) or _default_branch(repository)
    tip = repository.tip(ref) if ref is not None else None
    if ref is not None and tip is not None:
        return TrustedBranch(ref, tip)
    if named:
        raise GitUnavailable(
            f"the trusted branch {quoted(named)} of {TRUST_VARIABLE} does not exist",
            hint=f"fetch it, or correct {TRUST_VARIABLE}",
        )
    return None


def _default_branch(repository: Repository) -> str | None:
    """Return the branch that HEAD of origin names, None if this clone does not know it.

    Whoever can push may make a branch of the name HEAD, which a fetch stores in its place, or a tag
    of its full name. Both name a commit and no branch.
    """
    head = f"{_REMOTES}{REMOTE}/{HEAD}"
    named = repository.symbolic_target(head)
    return named if named is not None and _is_branch_of(head, named) else None


def _is_branch_of(head: str, named: str) -> bool:
    return named != head and named.startswith(head.removesuffix(HEAD))


def base_branches(
    repository: Repository, environ: Mapping[str, str], name: str | None
) -> Mapping[str, str]:
    """Return the tips of the branches that a base may be on, by full name.

    It is the branch `name` of every remote, or without a name the default branch, which is guessed
    where the clone does not know it. Without one, it is the local branch unless that is checked
    out. Anybody may have chosen these names, so they decide nothing but the base.
    """
    if name is None and (environ.get(TRUST_VARIABLE) or default_branch_of(environ)):
        trusted = trusted_branch(repository, environ)
        if trusted is not None:
            return {trusted.ref: trusted.commit}
    names = (HEAD, "main", "master") if name is None else (name,)
    patterns = [f"{place}/{part}" for part in names for place in (f"{_REMOTES}*", "refs/heads")]
    defaults: dict[str, tuple[str, str]] = {}
    own: dict[str, str] | None = None
    for ref, target, tip, is_current in repository.references(patterns):
        remote = ref.removeprefix(_REMOTES).partition("/")[0]
        if not ref.startswith(_REMOTES):
            if ref.removeprefix(_HEADS) in names and own is None:
                own = {} if is_current else {ref: tip}
        elif not ref.endswith(f"/{HEAD}"):
            defaults.setdefault(remote, (ref, tip))
        elif _is_branch_of(ref, target):
            defaults[remote] = (target, tip)
    if not defaults and own and next(repository.references([_REMOTES]), None) is None:
        return own
    return dict(defaults.values())
