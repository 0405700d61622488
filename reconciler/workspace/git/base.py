"""Choose the base: the commit that a plan compares the configuration with.

A reference of the repository names the applied commit, from which an environment was last applied
completely. It is data, not trust: anybody who can push may move it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from urllib.parse import quote

from msgspec import Struct

from reconciler.errors import BadUsage, GitUnavailable
from reconciler.model.resource import Desired
from reconciler.model.text import quoted
from reconciler.workspace.git.ci import (
    HEADS,
    REMOTE_BRANCHES,
    TRUST_VARIABLE,
    before_push_of,
    default_branch_of,
    is_job,
    target_of,
)
from reconciler.workspace.git.repository import HEAD, Blobs, Commit, GitSource, Repository
from reconciler.workspace.sources import content_id

_UPSTREAM = "@{upstream}"
_REVISION = frozenset("~^@{}:")
"""Characters of expressions such as origin/main~3, which cannot be fetched."""
DEFAULT_PREFIX = "refs/reconciler"
_LOCAL_PREFIX = "refs/reconciler-local"
REMOTE = "origin"
_REMOTES = "refs/remotes/"


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


# Without slots, since cached properties need a dict.
class Range(Struct, frozen=True, dict=True):
    """The base, and the later first-parent commits that change the workspace, oldest first.

    `trees` are those of the workspace in all commits of the range, by commit.
    """

    repository: Repository
    base: Commit
    later: tuple[Commit, ...]
    trees: Mapping[str, str | None]

    @classmethod
    def between(cls, repository: Repository, base: Commit, ends: Sequence[str]) -> Range:
        """Return the commits after a base up to one end, then up to the next one.

        Raises GitUnavailable if a shallow clone lacks some of them.
        """
        ends = [end for end in ends if end != base.id]
        if (
            ends
            and repository.is_shallow
            and any(repository.roots_since(base.id, end) for end in ends)
        ):
            raise GitUnavailable(
                f"this shallow clone lacks commits between the base {base.id[:7]} and HEAD",
                hint=shallow_hint(),
            )
        after = (commit for end in ends for commit in repository.commits_since(base.id, end))
        commits = {commit.id: commit for commit in (base, *after)}
        # An end that does not contain the base, such as a first commit that was amended.
        commits |= {end: repository.described(end) for end in ends if end not in commits}
        trees = dict(zip(commits, repository.trees([*commits]), strict=True))
        # Git would leave out a merge whose first parent, left out too, has the same tree.
        later = [
            commit
            for former, commit in pairwise(commits.values())
            if trees[commit.id] != trees[former.id]
        ]
        return cls(repository, base, tuple(later), trees)

    @cached_property
    def _sources(self) -> Mapping[str | None, GitSource]:
        blobs = Blobs(self.repository)
        return {tree: GitSource(blobs, tree) for tree in self.trees.values()}

    def source(self, commit: str) -> GitSource:
        """Return the files at a commit of the range."""
        return self._sources[self.trees[commit]]

    def sources(self) -> Iterator[tuple[Commit, GitSource]]:
        """Yield the files at the base, then at every later commit. Equal ones are one value."""
        for commit in (self.base, *self.later):
            yield commit, self.source(commit.id)


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
            if ref.removeprefix(HEADS) in names and own is None:
                own = {} if is_current else {ref: tip}
        elif not ref.endswith(f"/{HEAD}"):
            defaults.setdefault(remote, (ref, tip))
        elif _is_branch_of(ref, target):
            defaults[remote] = (target, tip)
    if not defaults and own and next(repository.references([_REMOTES]), None) is None:
        return own
    return dict(defaults.values())
