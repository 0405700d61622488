"""The applied commit: the one from which an environment was last applied completely.

A reference of the repository names it. It is data, not trust: anybody who can push may move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from msgspec import Struct

from reconciler.errors import BadUsage, GitUnavailable
from reconciler.model.wording import quoted
from reconciler.workspace.git.base import shallow_hint
from reconciler.workspace.git.ci import TRUST_VARIABLE, default_branch_of
from reconciler.workspace.git.repository import HEAD, Repository

DEFAULT_PREFIX = "refs/reconciler"
REMOTE = "origin"


class Applied(Struct, frozen=True):
    """The applied commit of an environment, and the reference that names it.

    `is_ancestor`: of HEAD. `outside`: the trusted branch that does not contain it, None otherwise.
    """

    ref: str
    commit: str
    is_ancestor: bool
    outside: str | None

    @property
    def fetch(self) -> str:
        """The command that fetches the reference."""
        return fetch_command(self.ref)


def applied_ref(repository: Repository, environment: str, *, prefix: str | None) -> str:
    """Return the full name of the reference of an environment."""
    path = [prefix] if prefix is not None else [DEFAULT_PREFIX, *map(_part, _parts(repository))]
    return "/".join([*path, _part(environment)])


def fetch_command(ref: str) -> str:
    """Return the command that fetches a reference of an applied commit."""
    return f"git fetch {REMOTE} '+{ref}:{ref}'"


def applied_commit(
    repository: Repository, ref: str, head: str, environ: Mapping[str, str]
) -> Applied | None:
    """Return the applied commit that a reference names, None if it does not exist.

    Raises GitUnavailable if a shallow clone lacks the history to judge it.
    """
    commit = repository.commit(ref)
    if commit is None:
        return None
    trusted = trusted_branch(repository, environ)
    is_ancestor = repository.is_ancestor(commit, head)
    is_outside = trusted is not None and not repository.is_ancestor(commit, trusted.commit)
    if (is_outside or not is_ancestor) and repository.is_shallow:
        raise GitUnavailable(
            f"this shallow clone lacks the history from the applied commit {commit[:7]} to HEAD",
            hint=shallow_hint(),
        )
    outside = trusted.ref if trusted is not None and is_outside else None
    return Applied(ref, commit, is_ancestor, outside)


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
    branches = f"refs/remotes/{REMOTE}/"
    head = f"{branches}{HEAD}"
    named = repository.symbolic_target(head)
    is_branch = named is not None and named != head and named.startswith(branches)
    return named if is_branch else None


def _parts(repository: Repository) -> list[str]:
    return repository.path.split("/") if repository.path else []


def _part(name: str) -> str:
    """Return a name as one part of the name of a reference, which allows fewer characters."""
    part = quote(name, safe="").replace("~", "%7E").replace("..", ".%2E")
    if part.startswith("."):
        part = f"%2E{part[1:]}"
    if part.endswith((".lock", ".")):
        at = part.rindex(".")
        part = f"{part[:at]}%2E{part[at + 1 :]}"
    return part
