"""The git history of a workspace: what was applied, and files that HEAD lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.errors import GitUnavailable, ReconcilerError, StalePlan
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.event import Report
from reconciler.model.inventory import Entry
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.text import listed, printable, shortened
from reconciler.model.values import SecretRef, leaves_of
from reconciler.planning.inventory import Inventory, Record, entries_after, hash_of_secrets
from reconciler.workspace.elsewhere import declared_in_others
from reconciler.workspace.git.base import shallow_hint, trusted_branch
from reconciler.workspace.git.ci import head_branch_of, is_job
from reconciler.workspace.git.inventory import REMOTE, read_entries, record, ref_of
from reconciler.workspace.git.repository import HEAD, Blobs, Commit, GitSource, Repository
from reconciler.workspace.loading import Loaded, load_at
from reconciler.workspace.resource_files import files_by_glob
from reconciler.workspace.sources import content_id

_LONGEST_REF = 80
_MOST_LISTED = 5
_MOST_VERSIONS = 4
"""Of each file, on average, that are kept while commits are loaded."""
_Entries = Mapping[Address, Entry]


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
        """The full name of the reference of the inventory."""
        desired = self.loaded.desired
        return ref_of(self.repository, desired.environment, desired.base_url, desired.organization)

    @cached_property
    def uncommitted(self) -> Sequence[str]:
        """The files of the workspace that differ from HEAD, sorted."""
        return self._differing(self._source(self.head or HEAD))

    def inventory(self, *, push: bool = False, rollback: bool = False) -> Inventory:
        """Return what was applied. It is empty without a record, and before the first commit.

        With `push`, the record is that of the remote. With `rollback`, entries count as current
        whose commit HEAD lacks.
        """
        repository, head = self.repository, self.head
        today = dict(self._contents())
        hashes = dict(self._hashes(today))
        if head is None:
            return Inventory(hashes=hashes)
        tip = repository.fetched(REMOTE, self.ref) if push else repository.tip(self.ref)
        newest = repository.commit(f"{tip}^1") if tip is not None else None
        if tip is None or newest is None:
            return Inventory(hashes=hashes, trusted=self._trusted())
        every = read_entries(repository, tip)
        commits = {entry.commit for entry in every.values() if entry.commit is not None}
        times = repository.times({*commits, newest})
        uncounted = dict(self._uncounted(every, commits - times.keys()))
        entries = {at: entry for at, entry in every.items() if at not in uncounted}
        self._find_trees([*sorted(commits & times.keys()), head, newest])
        former, applied, parents = self._applied(entries, newest, times)
        trusted = self._trusted()
        behind = {} if rollback else dict(self._behind(entries, applied, head))
        if behind and repository.is_shallow:
            raise _shallow("history of the", next(iter(behind.values())))
        is_newer = self._trees[head] != self._trees[newest] and repository.is_ancestor(head, newest)
        return Inventory(
            entries=entries,
            applied=applied,
            parents=parents,
            hashes=hashes,
            uncounted=uncounted,
            behind=behind,
            elsewhere=dict(self._elsewhere(entries, parents)),
            trusted=trusted,
            contents=dict(self._contents_of(entries, applied, today)),
            former=former,
            times=times,
            every=every,
            record=Record(
                *(self.ref, tip, newest, times[newest]),
                commits=repository.count_since(newest, head),
                is_newer=is_newer and not rollback,
            ),
        )

    def _trusted(self) -> Mapping[Address, Resource]:
        """Return the resources of the trusted branch, none if it is unknown or has errors.

        Nothing was applied from files with errors, and what was applied counts by itself.
        """
        with suppress(GitUnavailable):
            branch = trusted_branch(self.repository, self.environ)
            if branch is not None:
                return self.configuration(branch.commit).resources
        return {}

    def _uncounted(
        self, entries: _Entries, missing: Collection[str]
    ) -> Iterator[tuple[Address, str]]:
        """Yield entries whose commit cannot be believed or is missing, with the reason."""
        in_job, line = is_job(self.environ), {entry.commit for entry in entries.values()}
        branch = "the trusted branch"
        if in_job:
            trusted = trusted_branch(self.repository, self.environ)
            line = set(self.repository.first_parents(trusted.commit)) if trusted else set()
            branch = trusted.ref if trusted is not None else f"{branch}, which is not known here"
        for address, entry in entries.items():
            if entry.commit is None:
                if in_job:
                    yield address, "it was applied from files that were not committed"
            elif entry.commit in missing or entry.commit not in line:
                if self.repository.is_shallow:
                    raise _shallow("", entry.commit)
                where = (
                    "this clone" if entry.commit in missing else f"the first parents of {branch}"
                )
                yield address, f"its commit {entry.commit[:7]} is not in {where}"

    def _hashes(self, contents: Mapping[str, str]) -> Iterator[tuple[Address, str]]:
        """Yield the hashes of the secrets of today's resources."""
        desired = self.loaded.desired
        for address in {at for users in desired.secret_users.values() for at in users}:
            if (digest := hash_of_secrets(desired.resources[address], contents)) is not None:
                yield address, digest

    def _contents(self) -> Iterator[tuple[str, str]]:
        """Yield the origins of tracked files that secrets come from, with ids of the contents."""
        sources = (source for ref in self.loaded.desired.secret_users for source in ref.sources)
        names = {item.origin: item.argument for item in sources if item.source == "file"}
        if not names or self.head is None:
            return
        source = self._source(self.head)
        for origin, name in names.items():
            if source.contains(name) and (self.folder / name).is_file():
                yield origin, content_id((self.folder / name).read_bytes())

    def _contents_of(
        self, entries: _Entries, applied: Mapping[Address, Resource], today: Mapping[str, str]
    ) -> Iterator[tuple[tuple[str | None, str], str]]:
        """Yield those of today, if there are any, and those at the commits of entries."""
        yield from (((None, origin), content) for origin, content in today.items())
        files = {
            (entries[address].commit or "", source)
            for address, was in applied.items()
            for ref in (leaves_of(was.spec, SecretRef) if today else ())
            for source in ref.sources
            if source.source == "file"
        }
        for commit, source in sorted(files):
            at_commit = GitSource(self._blobs, self._trees[commit])
            if (content := at_commit.id_of(source.argument)) is not None:
                yield (commit, source.origin), content

    def _elsewhere(
        self, entries: _Entries, parents: Mapping[Address, Resource]
    ) -> Iterator[tuple[Address, str]]:
        """Yield removed addresses that other files may declare, with the reason."""
        loaded = self.loaded
        removed = entries.keys() - loaded.desired.resources.keys()
        for address in removed & loaded.declared.keys():
            yield address, f"its `environments` leave out {loaded.desired.environment}"
        removed -= loaded.declared.keys()
        for address in removed if removed and self.repository.is_sparse else ():
            yield address, "this sparse checkout leaves out YAML files of the repository"
        names = {
            at: (entries[at].name, parents[at].name if at in parents else None) for at in removed
        }
        if names:
            read = {self.folder / name for name in loaded.files.keys() - loaded.skipped}
            yield from declared_in_others(
                self.repository.root, self.folder, read, names, service=loaded.desired
            )

    def _applied(
        self, entries: _Entries, newest: str, times: Mapping[str, datetime]
    ) -> tuple[Desired, dict[Address, Resource], dict[Address, Resource]]:
        """Return how the commits of entries declare them, and the project of each, if it has a key.

        Before that, the configuration of the newest applied commit. Nothing else of a commit is
        loaded or kept: many commits of many resources need no more memory.
        """
        applied, parents = dict[Address, Resource](), dict[Address, Resource]()
        wanted: dict[str, list[Address]] = {}
        first = {self._trees[commit]: commit for commit in times if commit in self._trees}
        first[self._trees[newest]] = newest
        for address, entry in entries.items():
            if entry.commit is not None:
                wanted.setdefault(first[self._trees[entry.commit]], []).append(address)
        former = self.configuration(newest, wanted.setdefault(newest, []))
        # Neighbours have most files in common.
        for commit in sorted(wanted, key=lambda commit: times[commit], reverse=True):
            desired = former if commit == newest else self.configuration(commit, wanted[commit])
            for address in wanted[commit]:
                was, above = desired.resources.get(address), kinds_by_name()[address.kind].parent
                if was is not None and was.state is State.PRESENT:
                    # Places of fields keep the whole file.
                    is_today = was is self.loaded.desired.resources.get(address)
                    applied[address] = was if is_today else replace(was, marks={})
                    key = was.parent.key if was.parent is not None else None
                    parent = desired.resources.get(Address(above or "", key or ""))
                    if parent is not None:
                        parents[address] = parent
        return former, applied, parents

    def _behind(
        self, entries: _Entries, applied: Mapping[Address, Resource], head: str
    ) -> Iterator[tuple[Address, str]]:
        """Yield the entries that are not current, with their commits.

        Current are those whose commit HEAD contains, those that are declared today as they were
        applied, and those that the files at the merge base declare so.
        """
        today = self.loaded.desired.resources
        commits = {entry.commit for entry in entries.values() if entry.commit is not None}
        lacking = self.repository.lacking(commits, head)
        bases = {commit: self.repository.merge_base(commit, head) for commit in lacking}
        left: dict[str | None, list[tuple[Address, str]]] = {}
        for address, entry in entries.items():
            commit, was = entry.commit, applied.get(address)
            if commit in bases and not _is_same(was, today.get(address)):
                left.setdefault(bases[commit], []).append((address, commit))
        for base, pairs in left.items():
            wanted = [address for address, _ in pairs]
            former = self.configuration(base, wanted).resources if base is not None else None
            for address, commit in pairs:
                if former is None or not _is_same(applied.get(address), former.get(address)):
                    yield address, commit

    def check_direction(self, inventory: Inventory, plan: Plan) -> None:
        """Raise StalePlan if the files are older than what was applied."""
        record = inventory.record
        if record is not None and record.is_newer:
            raise StalePlan(
                f"HEAD is older than the newest applied commit {record.applied[:7]}, where the "
                "files differ; nothing was sent",
                hint="apply the newest commit, or use --rollback",
            )
        behind = [change for change in plan.changes if change.address in inventory.behind]
        if behind:
            commits = sorted({inventory.behind[change.address][:7] for change in behind})
            raise StalePlan(
                f"HEAD lacks applied commits: {listed(commits, _MOST_LISTED)}; nothing was sent",
                hint="merge them, or use --rollback",
            )

    def check_pushable(self) -> None:
        """Raise ReconcilerError if HEAD, which would be recorded, is not what is applied."""
        head = self.required_head()
        if files := self.uncommitted:
            raise ReconcilerError(
                f"--push records HEAD, but these files differ from it: "
                f"{listed(files, _MOST_LISTED)}; nothing was sent",
                hint="commit or restore them, or omit --push",
            )
        trusted = trusted_branch(self.repository, self.environ)
        if trusted is None and is_job(self.environ):
            raise GitUnavailable(
                "--push needs the trusted branch, which this clone does not have; nothing was sent",
                hint="fetch the default branch (fetch-depth: 0), or set RECONCILER_TRUST_REF",
            )
        if trusted is not None and not self.repository.is_ancestor(head, trusted.commit):
            raise ReconcilerError(
                f"--push records HEAD, but {trusted.ref} does not contain it; nothing was sent",
                hint="push or merge it first, or omit --push",
            )

    def record(
        self, plan: Plan, ended: tuple[Report, Plan | None], inventory: Inventory, *, push: bool
    ) -> None:
        """Write what a run applied."""
        head, desired = self.required_head(), self.loaded.desired
        committed = self.configuration(head) if self.uncommitted else desired
        own = entries_after(inventory, plan, ended, desired.resources, (head, committed.resources))
        began = inventory.record.tip if inventory.record is not None else None
        record(self.repository, self.ref, head, own, began=began, push=push)

    def configuration(self, commit: str, wanted: Collection[Address] | None = None) -> Desired:
        """Return the configuration at a commit: the loaded one if its files are the same.

        `wanted` are the only resources that are needed. Raises GitUnavailable for errors in files.
        """
        loaded, source = self.loaded, self._source(commit)
        if not self._differing(source):
            return loaded.desired
        if len(loaded.parsed) > _MOST_VERSIONS * len(loaded.files):
            loaded.parsed.clear()
            del self._blobs
            source = self._source(commit)
        try:
            return load_at(
                source,
                environment=loaded.desired.environment,
                environ=self.environ,
                parsed=loaded.parsed,
                trusted=loaded.secrets.trusted,
                wanted=frozenset(wanted) if wanted is not None else None,
            )
        except InvalidConfiguration as error:
            raise _invalid(commit, error.diagnostics) from None

    def _find_trees(self, commits: Iterable[str]) -> None:
        unknown = [commit for commit in dict.fromkeys(commits) if commit not in self._trees]
        if unknown:
            self._trees.update(zip(unknown, self.repository.trees(unknown), strict=True))

    @cached_property
    def _trees(self) -> dict[str, str | None]:
        """The trees of the workspace by commit, as far as they were needed."""
        return {}

    @cached_property
    def _blobs(self) -> Blobs:
        return Blobs(self.repository)

    def required_head(self) -> str:
        """Return the commit of HEAD. Raises GitUnavailable before the first commit."""
        if self.head is None:
            raise GitUnavailable("the git repository has no commit")
        return self.head

    def _source(self, commit: str) -> GitSource:
        self._find_trees([commit])
        return GitSource(self._blobs, self._trees[commit])

    def _differing(self, source: GitSource) -> list[str]:
        """Return the files that the workspace and a source do not have in common, sorted."""
        contents = self.loaded.files
        matches = files_by_glob(source, self.loaded.globs)
        selected = {name for names in matches.values() for name in names}
        changed = {name for name, content in contents.items() if not source.has(name, content)}
        return sorted(changed | (selected - contents.keys()))


def _is_same(one: Resource | None, other: Resource | None) -> bool:
    """Return whether neither is declared, or both are alike."""
    return one.declares_as(other) if one is not None else other is None


def _shallow(what: str, commit: str) -> GitUnavailable:
    whose = " ".join(filter(None, ["the", what, "applied commit"]))
    return GitUnavailable(f"this shallow clone lacks {whose} {commit[:7]}", hint=shallow_hint())


def _invalid(commit: str, diagnostics: Sequence[Diagnostic]) -> GitUnavailable:
    first = diagnostics[0]
    place = f"{first.at}: " if first.at is not None else ""
    return GitUnavailable(
        f"errors in the files at the applied commit {commit[:7]}: {place}{first.message}",
        hint="use --no-inventory to plan without what was applied",
    )
