"""The applied commit: the one from which an environment was last applied completely.

A reference of the repository names it. It is data, not trust: anybody who can push may move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from msgspec import Struct

from reconciler.errors import GitUnavailable
from reconciler.model.resource import Desired
from reconciler.workspace.git.base import shallow_hint
from reconciler.workspace.git.branches import trusted_branch
from reconciler.workspace.git.repository import Repository
from reconciler.workspace.sources import content_id

DEFAULT_PREFIX = "refs/reconciler"
_LOCAL_PREFIX = "refs/reconciler-local"


class Applied(Struct, frozen=True):
    """The applied commit of an environment, and the reference that names it.

    `is_ancestor`: of HEAD. `outside`: the trusted branch that does not contain it, None otherwise.
    """

    ref: str
    commit: str
    is_ancestor: bool
    outside: str | None


def applied_ref(repository: Repository, environment: str, *, prefix: str | None) -> str:
    """Return the full name of the reference of an environment."""
    path = [prefix] if prefix is not None else [DEFAULT_PREFIX, *map(_part, _parts(repository))]
    return "/".join([*path, _part(environment)])


def local_ref(repository: Repository, desired: Desired) -> str | None:
    """Return the full name of the local record of an environment, None where a remote exists.

    It differs by service, so that what was applied to a copy does not count.
    """
    if repository.remotes:
        return None
    service = content_id(f"{desired.base_url} {desired.organization}".encode())[:8]
    parts = map(_part, (service, *_parts(repository), desired.environment))
    return "/".join((_LOCAL_PREFIX, *parts))


def applied_commit(
    repository: Repository, ref: str | None, head: str | None, environ: Mapping[str, str]
) -> Applied | None:
    """Return the applied commit that a reference names, None if it or HEAD does not exist.

    Raises GitUnavailable if a shallow clone lacks the history to judge it.
    """
    commit = repository.commit(ref) if ref is not None else None
    if ref is None or head is None or commit is None:
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
