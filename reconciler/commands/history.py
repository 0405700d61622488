"""The git history of a workspace: its base, its applied commit, and files that HEAD lacks.

`apply --mark` records the commit that was applied completely, and refuses to undo it by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.errors import GitUnavailable, ReconcilerError, StalePlan
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.plan import Note
from reconciler.model.policy import Prune
from reconciler.model.resource import Desired
from reconciler.model.text import listed, printable, several, shortened
from reconciler.planning.base import Base
from reconciler.workspace.git.base import (
    REMOTE,
    Applied,
    BaseCommit,
    Range,
    applied_commit,
    applied_ref,
    base_branches,
    base_of_ref,
    default_base,
    local_ref,
    trusted_branch,
)
from reconciler.workspace.git.ci import head_branch_of, target_of
from reconciler.workspace.git.repository import HEAD, Blobs, Commit, GitSource, Repository
from reconciler.workspace.layers import Snapshots
from reconciler.workspace.loading import Loaded, load_at
from reconciler.workspace.resource_files import files_by_glob

_MOST_LISTED = 5
_LONGEST_REF = 80


# Without slots, since cached properties need a dict.
class WorkspaceHistory(Struct, frozen=True, dict=True):
    """The history of a loaded workspace. Methods raise GitUnavailable if git fails.

    `at` is the commit of HEAD while it was loaded, if that is known.
    """

    repository: Repository
    folder: Path
    loaded: Loaded
    environ: Mapping[str, str]
    at: Commit | None = None

    @classmethod
    def of(
        cls, folder: Path, loaded: Loaded, environ: Mapping[str, str], at: Commit | None = None
    ) -> WorkspaceHistory | None:
        """Return the history of a workspace, None outside of a repository."""
        repository = Repository.containing(folder)
        return cls(repository, folder, loaded, environ, at) if repository is not None else None

    @cached_property
    def _head(self) -> Commit | None:
        return self.at or self.repository.head()

    @property
    def head(self) -> str | None:
        """The commit of HEAD, None before the first commit."""
        return self._head.id if self._head is not None else None

    @cached_property
    def head_ref(self) -> str | None:
        """The branch of HEAD for readers, None if neither git nor the CI job names one."""
        branch = self.repository.branch() or head_branch_of(self.environ)
        return shortened(printable(branch), _LONGEST_REF) if branch else None

    @cached_property
    def ref(self) -> str:
        """The full name of the reference of the applied commit."""
        environment = self.loaded.desired.environment
        return applied_ref(self.repository, environment, prefix=self.loaded.mark_prefix)

    @cached_property
    def local_ref(self) -> str | None:
        """The full name of the reference of the local record, None where a remote exists."""
        return local_ref(self.repository, self.loaded.desired)

    @cached_property
    def applied(self) -> Applied | None:
        """The applied commit of the environment: its mark, or else the local record, if any."""
        mark = applied_commit(self.repository, self.ref, self.head, self.environ)
        return mark or applied_commit(self.repository, self.local_ref, self.head, self.environ)

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The files of the workspace that a sparse checkout leaves out."""
        return self.repository.left_out()

    @cached_property
    def _has_remotes(self) -> bool:
        return bool(self.repository.remotes)

    @property
    def branch(self) -> str:
        """The branch that bases are on, in words."""
        return self.loaded.branch or "the default branch"

    @cached_property
    def _branches(self) -> Mapping[str, str]:
        return base_branches(self.repository, self.environ, self.loaded.branch)

    def uncommitted(self) -> list[str]:
        """Return the files of the workspace that differ from HEAD, sorted."""
        (tree,) = self.repository.trees([self.head or HEAD])
        return self._differing(GitSource(Blobs(self.repository), tree))

    def base(self, ref: str | None) -> Base | None:
        """Return the base that a reference names, or the default one; None before a commit."""
        if ref is not None:
            return self._with_branch(self._up_to_head(base_of_ref(self.repository, self.head, ref)))
        if self.head is None:
            return None
        applied = self.applied
        used = applied if applied is not None and applied.outside is None else None
        base = self._base_of(used, self.head)
        notes = tuple(_notes(applied, base.id)) if applied is not None else ()
        return self._with_branch(self._up_to_head(base, applied=used, notes=notes))

    def _base_of(self, applied: Applied | None, head: str) -> BaseCommit:
        """Return the base of an applied commit, or the default one without it."""
        if applied is None:
            return default_base(self.repository, head, self.environ, self._branches)
        # The very first commit may have been amended.
        base = self.repository.merge_base(head, applied.commit) or applied.commit
        return BaseCommit(base, self.repository.short_name(applied.ref))

    def _with_branch(self, base: Base) -> Base:
        """Return the base, with a note on what only earlier commits of a pull request declare.

        Hosts plan the merge of its branch, whose commits are not those from the base to HEAD. They
        are if the branch is merged commit by commit: `prune: git` then removes these resources.
        """
        prunes = Prune.GIT in self.loaded.own_policy.prune.values()
        if not prunes or target_of(self.environ) is None:
            return base
        branch = self.repository.commit(f"{HEAD}^2")
        if branch is None:
            return base
        fork = self.repository.merge_base(base.commit, branch)
        start = self.repository.described(fork or base.commit)
        earlier = self._loaded(Range.between(self.repository, start, (branch,)), ())
        declared = {address for desired in earlier.later for address in desired.resources}
        for known in (self.loaded.desired, base.desired, *base.later):
            declared -= known.resources.keys()
        gone = sorted(declared - earlier.kept.keys())
        if not gone:
            return base
        text = (
            f"commits of this branch declare {listed(gone, _MOST_LISTED)}, and its last one does "
            "not: merged commit by commit (rebase), `prune: git` deletes what has their names; "
            "squash them"
        )
        return replace(base, notes=(*base.notes, Note("declared-on-the-way", text)))

    def _up_to_head(
        self, base: BaseCommit, *, applied: Applied | None = None, notes: tuple[Note, ...] = ()
    ) -> Base:
        """Return the base at a commit, with the commits up to the applied one, then up to HEAD."""
        head = self._head
        start = self.repository.described(base.id) if head is None or head.id != base.id else head
        ends = (*self._rolled_back(applied), self.head or base.id)
        commits = Range.between(self.repository, start, ends)
        differing = self._differing(commits.source(ends[-1]))
        uncommitted = any(
            name in self.loaded.files or name not in self.left_out for name in differing
        )
        remarks = tuple(self._remarks(base, applied))
        merged = self._is_merged(base.id, applied)
        if not merged:
            text = f"{self.branch} does not contain the base: no difference counts as drift"
            notes = (*notes, Note("base-not-merged", text))
        loaded = self._loaded(commits, notes)
        return replace(
            loaded, ref=base.ref, remarks=remarks, uncommitted=uncommitted, merged=merged
        )

    def _is_merged(self, base: str, applied: Applied | None) -> bool:
        """Return whether the default branch contains the base, or this clone recorded it."""
        is_record = applied is not None and applied.ref == self.local_ref
        tips = self._branches.values()
        if is_record or not (tips or self._has_remotes):
            return True
        return any(self.repository.is_ancestor(base, tip) for tip in tips)

    def _remarks(self, base: BaseCommit, applied: Applied | None) -> Iterator[str]:
        """Yield what a reader should know about the base itself."""
        head, repository = self.head, self.repository
        if base.id == head and applied is None:
            yield "committed removals and rotations count as applied"
        if applied is None and not self._branches and self._has_remotes:
            name = self.loaded.branch
            # Also where the clone fetches a single branch.
            fix = f"git fetch origin '+refs/heads/{name or '*'}:refs/remotes/origin/{name or '*'}'"
            fix += "" if name else " && git remote set-head origin -a"
            yield f"{self.branch} is not known in this clone: {fix}"
        for ref, tip in self._branches.items():
            if tip != head and (behind := repository.count_since(head or HEAD, tip)):
                yield f"HEAD is {several(behind, 'commit')} behind {repository.short_name(ref)}"

    def _rolled_back(self, applied: Applied | None) -> list[str]:
        """Return the applied commit if HEAD lacks it, so that its commits count as applied.

        A branch of a pull request will contain it after the merge.
        """
        is_branch = target_of(self.environ) is not None
        return [] if applied is None or applied.is_ancestor or is_branch else [applied.commit]

    def _loaded(self, commits: Range, notes: tuple[Note, ...]) -> Base:
        """Return the configurations of a range.

        A later commit with errors in its files cannot have been applied, and is left out.

        Raises GitUnavailable for errors in the files of the base.
        """
        # Most commits have the loaded files, and need none.
        snapshots = cache(self.loaded.snapshots)
        configurations: list[Desired] = []
        invalid: list[str] = []
        known: dict[str | None, Desired] = {}
        for commit, source in commits.sources():
            tree = commits.trees[commit.id]
            try:
                if tree not in known:
                    known[tree] = self._configuration(source, snapshots)
                configurations.append(known[tree])
            except InvalidConfiguration as error:
                if commit == commits.base:
                    raise _invalid_base(commit, error.diagnostics) from None
                invalid.append(commit.id[:7])
        if invalid:
            commits_listed = listed(invalid, _MOST_LISTED)
            text = f"left out of the base, since their files have errors: {commits_listed}"
            notes = (*notes, Note("invalid-commits", text))
        desired, *later = configurations
        return Base(
            desired=desired,
            commit=commits.base.id,
            later=tuple(later),
            commits=len(commits.later),
            time=commits.base.time,
            kept=dict(self._kept(configurations)),
            notes=notes,
        )

    def _configuration(self, source: GitSource, snapshots: Callable[[], Snapshots]) -> Desired:
        """Return the configuration of a commit: the loaded one if its files are the same."""
        if not self._differing(source):
            return self.loaded.desired
        return load_at(
            source,
            environment=self.loaded.desired.environment,
            environ=self.environ,
            snapshots=snapshots(),
            trusted=self.loaded.secrets.trusted,
        )

    def _kept(self, configurations: Sequence[Desired]) -> Iterator[tuple[Address, str]]:
        """Yield removed resources that are not removed from the tree, with the reason."""
        loaded = self.loaded
        read = loaded.files.keys() - loaded.skipped
        removed = {
            address: resource.mark.file if resource.mark is not None else ""
            for desired in configurations
            for address, resource in desired.resources.items()
            if address not in loaded.desired.resources
        }
        if not removed:
            return
        from reconciler.workspace.sources import keys_in_unloaded

        unloaded = keys_in_unloaded(self.folder, read)
        for address, file in removed.items():
            needed = {kinds_by_name()[address.kind].collection, address.key}
            others = (name for name, keys in unloaded.items() if needed <= keys)
            if address in loaded.declared:
                yield address, f"its `environments` leave out {loaded.desired.environment}"
            elif file in self.left_out:
                yield address, f"this sparse checkout leaves out its file {file}"
            elif file and file not in loaded.files and (self.folder / file).exists():
                yield address, f"its file {file} exists but is not loaded"
            elif (other := next(others, None)) is not None:
                yield address, f"{other} contains it but is not loaded"

    def check_markable(self) -> None:
        """Raise ReconcilerError if HEAD, which would be recorded, is not what is applied."""
        head = self._required_head()
        if files := self.uncommitted():
            raise ReconcilerError(
                f"--mark records HEAD, but these files differ from it: "
                f"{listed(files, _MOST_LISTED)}; nothing was sent",
                hint="commit or restore them, or omit --mark",
            )
        trusted = trusted_branch(self.repository, self.environ)
        if trusted is not None and not self.repository.is_ancestor(head, trusted.commit):
            raise ReconcilerError(
                f"--mark records HEAD, but {trusted.ref} does not contain it; nothing was sent",
                hint="push or merge it first, or omit --mark",
            )

    def check_direction(self) -> None:
        """Raise StalePlan if HEAD lacks the commit that is recorded as applied."""
        applied = self.applied
        if applied is None or applied.ref != self.ref or applied.outside is not None:
            return
        if not applied.is_ancestor:
            raise StalePlan(
                f"the applied commit {applied.commit[:7]} ({applied.ref}) is not an ancestor of "
                "HEAD; nothing was sent",
                hint="check out a commit that contains it, or use --rollback to apply an older one",
            )

    def mark(self) -> str:
        """Record HEAD as the applied commit of the environment, and return the reference.

        Call it after a complete run, once the second plan is empty. Nothing is recorded if the push
        fails, so that the next run starts from the former commit.
        """
        repository, applied, ref = self.repository, self.applied, self.ref
        former = applied.commit if applied is not None and applied.ref == ref else None
        head = self._required_head()
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

    def record(self) -> None:
        """Record HEAD as what was applied here, under the conditions of a mark, without a remote.

        No user asked for it, so a problem is not reported: the next plan starts from the former
        commit.
        """
        with suppress(ReconcilerError):
            if (ref := self.local_ref) is not None:
                self.check_markable()
                tip = self.repository.tip(ref)
                self.repository.update_ref(ref, self._required_head(), tip)

    def _required_head(self) -> str:
        if self.head is None:
            raise GitUnavailable("the git repository has no commit")
        return self.head

    def _differing(self, source: GitSource) -> list[str]:
        """Return the files that the workspace and a source do not have in common, sorted."""
        contents = self.loaded.files
        matches = files_by_glob(source, self.loaded.globs)
        selected = {name for names in matches.values() for name in names}
        changed = {name for name, content in contents.items() if not source.has(name, content)}
        return sorted(changed | (selected - contents.keys()))


def _invalid_base(commit: Commit, diagnostics: Sequence[Diagnostic]) -> GitUnavailable:
    first = diagnostics[0]
    place = f"{first.at}: " if first.at is not None else ""
    return GitUnavailable(
        f"errors in the files at the base {commit.id[:7]}: {place}{first.message} [{first.code}]",
        hint="use --base with a commit whose files have no errors, or --no-base",
    )


def _notes(applied: Applied, base: str) -> Iterator[Note]:
    commit = applied.commit[:7]
    if applied.outside is not None:
        yield Note(
            "applied-commit-ignored",
            f"the applied commit {commit} ({applied.ref}) is not in {applied.outside} and is "
            "ignored",
        )
    elif not applied.is_ancestor:
        yield Note(
            "applied-commit-not-in-head",
            f"the applied commit {commit} ({applied.ref}) is not an ancestor of HEAD; the base is "
            f"{base[:7]}",
        )
