"""The git history of a workspace: what was applied, and files that HEAD lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from msgspec import Struct

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
from reconciler.workspace.layers import Snapshots
from reconciler.workspace.loading import Loaded, load_at
from reconciler.workspace.resource_files import files_by_glob
from reconciler.workspace.sources import content_id

_LONGEST_REF = 80
_MOST_LISTED = 5
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
    def left_out(self) -> frozenset[str]:
        """The files of the workspace that a sparse checkout leaves out."""
        return self.repository.left_out()

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
        hashes = dict(self._hashes())
        if head is None:
            return Inventory(hashes=hashes)
        reading = _Reading(self, head)
        trusted = self._trusted(reading)
        tip = repository.fetched(REMOTE, self.ref) if push else repository.tip(self.ref)
        newest = repository.commit(f"{tip}^1") if tip is not None else None
        if tip is None or newest is None:
            return Inventory(hashes=hashes, trusted=trusted)
        every = read_entries(repository, tip)
        uncounted = dict(self._uncounted(every))
        entries = {at: entry for at, entry in every.items() if at not in uncounted}
        applied, parents = reading.applied(entries)
        behind = {} if rollback else dict(reading.behind(entries, applied))
        if behind and repository.is_shallow:
            raise GitUnavailable(
                f"this shallow clone lacks the history of the applied commit "
                f"{next(iter(behind.values()))[:7]}",
                hint=shallow_hint(),
            )
        return Inventory(
            entries=entries,
            applied=applied,
            parents=parents,
            hashes=hashes,
            uncounted=uncounted,
            behind=behind,
            elsewhere=dict(self._elsewhere(entries, applied, parents)),
            trusted=trusted,
            former=reading.configuration(newest),
            times={
                commit: repository.described(commit).time
                for commit in {entry.commit for entry in entries.values()}
                if commit is not None
            },
            every=every,
            record=Record(
                self.ref,
                tip,
                newest,
                repository.described(newest).time,
                commits=repository.count_since(newest, head),
                is_newer=not rollback and newest != head and reading.is_newer(newest),
            ),
        )

    def _trusted(self, reading: _Reading) -> Mapping[Address, Resource]:
        """Return the resources of the trusted branch, none if it is unknown or has errors.

        Nothing was applied from files with errors, and what was applied counts by itself.
        """
        with suppress(GitUnavailable):
            branch = trusted_branch(self.repository, self.environ)
            if branch is not None:
                return reading.configuration(branch.commit).resources
        return {}

    def _uncounted(self, entries: _Entries) -> Iterator[tuple[Address, str]]:
        """Yield entries whose commit cannot be believed or is missing, with the reason."""
        repository = self.repository
        commits = {entry.commit for entry in entries.values()} - {None}
        missing = {item for item in commits if item and repository.commit(item) is None}
        line: Collection[str | None] = commits
        branch = "the trusted branch"
        if is_job(self.environ):
            trusted = trusted_branch(repository, self.environ)
            line = repository.first_parents(trusted.commit) if trusted is not None else ()
            branch = trusted.ref if trusted is not None else f"{branch}, which is not known here"
        for address, entry in entries.items():
            if entry.commit is None:
                if is_job(self.environ):
                    yield address, "it was applied from files that were not committed"
            elif entry.commit in missing or entry.commit not in line:
                if repository.is_shallow:
                    raise GitUnavailable(
                        f"this shallow clone lacks the applied commit {entry.commit[:7]}",
                        hint=shallow_hint(),
                    )
                is_missing = entry.commit in missing
                where = "this clone" if is_missing else f"the first parents of {branch}"
                yield address, f"its commit {entry.commit[:7]} is not in {where}"

    def _hashes(self) -> Iterator[tuple[Address, str]]:
        """Yield the hashes of the secrets of today's resources."""
        resources = self.loaded.desired.resources
        contents = self._contents(resources.values())
        for address, resource in resources.items():
            if (digest := hash_of_secrets(resource, contents)) is not None:
                yield address, digest

    def _contents(self, resources: Collection[Resource]) -> Mapping[str, str]:
        """Return the ids of the contents of tracked files that secrets come from, by origin."""
        names = {
            source.origin: source.argument
            for resource in resources
            for ref in leaves_of(resource.spec, SecretRef)
            for source in ref.sources
            if source.source == "file"
        }
        if not names or self.head is None:
            return {}
        source = self._source(self.head)
        return {
            origin: content_id((self.folder / name).read_bytes())
            for origin, name in names.items()
            if source.contains(name) and (self.folder / name).is_file()
        }

    def _elsewhere(
        self,
        entries: _Entries,
        applied: Mapping[Address, Resource],
        parents: Mapping[tuple[str, Address], Resource],
    ) -> Iterator[tuple[Address, str]]:
        """Yield removed addresses that other files may declare, with the reason."""
        loaded = self.loaded
        removed = entries.keys() - loaded.desired.resources.keys()
        for address in removed & loaded.declared.keys():
            yield address, f"its `environments` leave out {loaded.desired.environment}"
        if removed and self.left_out:
            for address in removed - loaded.declared.keys():
                yield address, "this sparse checkout leaves out files of the workspace"
        names = {}
        for address in removed - loaded.declared.keys():
            kind, was, entry = kinds_by_name()[address.kind], applied.get(address), entries[address]
            key = was.parent.key if was is not None and was.parent is not None else None
            above = Address(kind.parent or "", key or "")
            parent = parents.get((entry.commit or "", above))
            names[address] = (entry.name, parent.name if parent is not None else None)
        if names:
            read = {self.folder / name for name in loaded.files.keys() - loaded.skipped}
            yield from declared_in_others(
                self.repository.root, self.folder, read, names, service=loaded.desired
            )

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

    def configuration(self, commit: str) -> Desired:
        """Return the configuration at a commit."""
        return _Reading(self, self.required_head()).configuration(commit)

    def required_head(self) -> str:
        """Return the commit of HEAD. Raises GitUnavailable before the first commit."""
        if self.head is None:
            raise GitUnavailable("the git repository has no commit")
        return self.head

    def _source(self, commit: str) -> GitSource:
        (tree,) = self.repository.trees([commit])
        return GitSource(Blobs(self.repository), tree)

    def _differing(self, source: GitSource) -> list[str]:
        """Return the files that the workspace and a source do not have in common, sorted."""
        contents = self.loaded.files
        matches = files_by_glob(source, self.loaded.globs)
        selected = {name for names in matches.values() for name in names}
        changed = {name for name, content in contents.items() if not source.has(name, content)}
        return sorted(changed | (selected - contents.keys()))


class _Reading(Struct, frozen=True, dict=True):
    """The configurations of commits, loaded when they are needed, and compared with HEAD."""

    history: WorkspaceHistory
    head: str

    def applied(
        self, entries: _Entries
    ) -> tuple[dict[Address, Resource], dict[tuple[str, Address], Resource]]:
        """Return how the commits of entries declare them, and the projects that they name by key.

        Nothing else of a commit is kept: many commits of many resources need no more memory.
        """
        by_commit: dict[str, list[Address]] = {}
        for address, entry in entries.items():
            if entry.commit is not None:
                by_commit.setdefault(entry.commit, []).append(address)
        applied: dict[Address, Resource] = {}
        parents: dict[tuple[str, Address], Resource] = {}
        for commit, addresses in by_commit.items():
            resources = self.configuration(commit).resources
            for address in addresses:
                was = resources.get(address)
                if was is None or was.state is State.ABSENT:
                    continue
                applied[address] = was
                kind = kinds_by_name()[address.kind].parent
                if kind is not None and was.parent is not None and was.parent.key is not None:
                    above = Address(kind, was.parent.key)
                    if above in resources:
                        parents[commit, above] = resources[above]
        return applied, parents

    def behind(
        self, entries: _Entries, applied: Mapping[Address, Resource]
    ) -> Iterator[tuple[Address, str]]:
        """Yield the entries that are not current, with their commits.

        Current are those whose commit HEAD contains, those that are declared today as they were
        applied, and those that the files at the merge base declare so.
        """
        repository, today = self.history.repository, self.history.loaded.desired.resources
        contained = {
            commit: repository.is_ancestor(commit, self.head)
            for commit in {entry.commit for entry in entries.values() if entry.commit is not None}
        }
        at_base: dict[str, Mapping[Address, Resource] | None] = {}
        for address, entry in entries.items():
            if entry.commit is None or contained[entry.commit]:
                continue
            was = applied.get(address)
            if _is_same(was, today.get(address)):
                continue
            if entry.commit not in at_base:
                base = repository.merge_base(entry.commit, self.head)
                at_base[entry.commit] = self.configuration(base).resources if base else None
            former = at_base[entry.commit]
            if former is None or not _is_same(was, former.get(address)):
                yield address, entry.commit

    def is_newer(self, commit: str) -> bool:
        """Return whether HEAD is an older ancestor of a commit with other files."""
        repository = self.history.repository
        own, other = repository.trees([self.head, commit])
        return own != other and repository.is_ancestor(self.head, commit)

    def configuration(self, commit: str) -> Desired:
        """Return the configuration at a commit: the loaded one if its files are the same.

        Raises GitUnavailable for errors in its files.
        """
        (tree,) = self.history.repository.trees([commit])
        known: Desired | None = self._last.get(tree)
        if known is not None:
            return known
        loaded, source = self.history.loaded, GitSource(self._blobs, tree)
        if not self.history._differing(source):  # noqa: SLF001 - a part of the same module
            return loaded.desired
        try:
            desired = load_at(
                source,
                environment=loaded.desired.environment,
                environ=self.history.environ,
                snapshots=self._snapshots,
                trusted=loaded.secrets.trusted,
            )
        except InvalidConfiguration as error:
            raise _invalid(commit, error.diagnostics) from None
        self._last.clear()
        self._last[tree] = desired
        return desired

    @cached_property
    def _last(self) -> dict[str | None, Desired]:
        return {}

    @cached_property
    def _blobs(self) -> Blobs:
        return Blobs(self.history.repository)

    @cached_property
    def _snapshots(self) -> Snapshots:
        return self.history.loaded.snapshots()


def _is_same(one: Resource | None, other: Resource | None) -> bool:
    """Return whether neither is declared, or both are alike."""
    return one.declares_as(other) if one is not None else other is None


def _invalid(commit: str, diagnostics: Sequence[Diagnostic]) -> GitUnavailable:
    first = diagnostics[0]
    place = f"{first.at}: " if first.at is not None else ""
    return GitUnavailable(
        f"errors in the files at the applied commit {commit[:7]}: {place}{first.message}",
        hint="use --no-inventory to plan without what was applied",
    )
