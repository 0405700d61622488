"""The range of a base: the commits from the base to HEAD that touch the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from reconciler.errors import GitUnavailable
from reconciler.workspace.git.base import shallow_hint
from reconciler.workspace.git.repository import Commit, Repository
from reconciler.workspace.git.source import Blobs, GitSource


class Range(Struct, frozen=True):
    """The base, and the later first-parent commits that touch the workspace, oldest first."""

    repository: Repository
    base: Commit
    later: tuple[Commit, ...]

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
        later = {
            commit.id: commit for end in ends for commit in repository.commits_since(base.id, end)
        }
        return cls(repository, base, tuple(later.values()))

    def sources(self) -> Iterator[tuple[Commit, GitSource]]:
        """Yield the files at the base, then at every later commit with other files."""
        commits = (self.base, *self.later)
        blobs = Blobs(self.repository)
        trees = self.repository.trees([commit.id for commit in commits])
        seen: set[str | None] = set()
        for commit, tree in zip(commits, trees, strict=True):
            if tree not in seen:
                seen.add(tree)
                yield commit, GitSource(blobs, tree)
