"""The range of a base: the commits from the base to HEAD that touch the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from reconciler.errors import GitUnavailable
from reconciler.workspace.git.base import shallow_hint
from reconciler.workspace.git.repository import Commit, Repository
from reconciler.workspace.git.source import Blobs, GitSource


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
