"""The git history of a workspace: what was applied, and files that HEAD lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import InvalidConfiguration
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
from reconciler.workspace.git.base import TrustedBranch, shallow_hint, trusted_branch
from reconciler.workspace.git.ci import head_branch_of, is_job
from reconciler.workspace.git.inventory import REMOTE, damaged, read_entries, record, ref_of
from reconciler.workspace.git.repository import HEAD, GitSource, Objects, Repository
from reconciler.workspace.loading import Loaded, load_at
from reconciler.workspace.paths import content_id
from reconciler.workspace.resource_files import files_by_glob

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
    at: str | None = None

    @classmethod
    def of(
        cls, folder: Path, loaded: Loaded, environ: Mapping[str, str], at: str | None = None
    ) -> WorkspaceHistory | None:
        """Return the history of a workspace, None outside of a repository."""
        repository = Repository.containing(folder)
        return cls(repository, folder, loaded, environ, at) if repository is not None else None

    @cached_property
    def head(self) -> str | None:
        """The commit of HEAD, None before the first commit."""
        return self.at or self.repository.commit(HEAD)

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

    @cached_property
    def _branch(self) -> TrustedBranch | None:
        return trusted_branch(self.repository, self.environ)

    def inventory(self, *, push: bool = False, rollback: bool = False) -> Inventory:
        """Return what was applied. It is empty without a record, and before the first commit.

        With `push`, the record is that of the remote. With `rollback`, entries count as current
        whose commit HEAD lacks.
        """
        repository, head, desired = self.repository, self.head, self.loaded.desired
        secret = {at for users in desired.secret_users.values() for at in users}
        own = dict(self._contents((None, desired.resources[at]) for at in secret))
        by_origin = {origin: content for (_, origin), content in own.items()}
        today = Inventory(
            hashes={at: hash_of_secrets(desired.resources[at], by_origin) for at in secret},
            trusted=self._trusted(),
        )
        tip = None
        if head is not None:
            tip = repository.fetched(REMOTE, self.ref) if push else repository.tip(self.ref)
        if head is None or tip is None:
            return today
        every, newest = read_entries(repository, tip), repository.commit(f"{tip}^1")
        if newest is None and repository.is_shallow:
            raise _lacking(f"the newest applied commit, the parent of {tip[:7]}")
        if newest is None:
            raise damaged(tip, "this clone lacks the newest applied commit, its parent")
        times = repository.times({newest, *(one.commit for one in every.values() if one.commit)})
        uncounted = dict(self._uncounted(every, times))
        entries = {at: entry for at, entry in every.items() if at not in uncounted}
        former, applied, parents = self._applied(entries, newest, times)
        behind = {} if rollback else dict(self._behind(entries, applied, head))
        unsure = [commit for at in (*uncounted, *behind) if (commit := every[at].commit)]
        if unsure and repository.is_shallow:
            raise _lacking(f"the history of the applied commit {unsure[0][:7]}")
        used = ((entries[at].commit, was) for at, was in applied.items()) if own else ()
        is_other = self._objects.tree(head) != self._objects.tree(newest)
        is_newer = is_other and repository.is_ancestor(head, newest)
        return replace(
            today,
            entries=entries,
            applied=applied,
            parents=parents,
            uncounted=uncounted,
            behind=behind,
            elsewhere=dict(self._elsewhere(entries, parents)),
            contents={**own, **dict(self._contents(used))},
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
            return self.configuration(self._branch.commit).resources if self._branch else {}
        return {}

    def _uncounted(
        self, entries: _Entries, known: Collection[str]
    ) -> Iterator[tuple[Address, str]]:
        """Yield entries whose commit cannot be believed or is missing, with the reason."""
        in_job, line, branch = is_job(self.environ), frozenset[str](), "the trusted branch"
        if in_job and self._branch is not None:
            line, branch = self.repository.first_parents(self._branch.commit), self._branch.ref
        for address, entry in entries.items():
            commit = entry.commit
            if commit is None:
                if in_job:
                    yield address, "it was applied from files that were not committed"
            elif commit not in known or (in_job and commit not in line):
                where = f"the first parents of {branch}" if commit in known else "this clone"
                yield address, f"its commit {commit[:7]} is not in {where}"

    def _contents(
        self, resources: Iterable[tuple[str | None, Resource]]
    ) -> Iterator[tuple[tuple[str | None, str], str]]:
        """Yield the ids of the contents of tracked files that secrets of resources come from.

        They are given and found by commit, None for the files of today.
        """
        refs = (
            (commit, ref) for commit, one in resources for ref in leaves_of(one.spec, SecretRef)
        )
        for commit, source in {(commit, source) for commit, ref in refs for source in ref.sources}:
            if source.source != "file":
                continue
            content = self._source(commit or self.head or HEAD).id_of(source.argument)
            if content is not None and commit is None:
                file = self.folder / source.argument
                content = content_id(file.read_bytes()) if file.is_file() else None
            if content is not None:
                yield (commit, source.origin), content

    def _elsewhere(
        self, entries: _Entries, parents: Mapping[Address, Resource]
    ) -> Iterator[tuple[Address, str]]:
        """Yield removed addresses that other files may declare, with the reason."""
        loaded, names = self.loaded, dict[Address, tuple[str, str | None]]()
        for address in entries.keys() - loaded.desired.resources.keys():
            if address in loaded.declared:
                yield address, f"its `environments` leave out {loaded.desired.environment}"
            else:
                parent = parents[address].name if address in parents else None
                names[address] = entries[address].name, parent
        read = {self.folder / name for name in loaded.files.keys() - loaded.skipped}
        if names:
            yield from declared_in_others(
                self.repository, self.folder, read, names, service=loaded.desired
            )

    def _applied(
        self, entries: _Entries, newest: str, times: Mapping[str, datetime]
    ) -> tuple[Desired, dict[Address, Resource], dict[Address, Resource]]:
        """Return how the commits of entries declare them, and the project of each, if it has a key.

        Before that, the configuration of the newest applied commit. Nothing else of a commit is
        loaded or kept: many commits of many resources need no more memory.
        """
        applied, parents = dict[Address, Resource](), dict[Address, Resource]()
        tree = self._objects.tree
        first = {tree(commit): commit for commit in (*times, newest)}
        wanted = defaultdict[str, list[Address]](list)
        for address, entry in entries.items():
            if entry.commit is not None:
                wanted[first[tree(entry.commit)]].append(address)
        former = self.configuration(newest, wanted[newest])
        # Neighbours have most files in common.
        for commit in sorted(wanted, key=lambda commit: times[commit], reverse=True):
            desired = former if commit == newest else self.configuration(commit, wanted[commit])
            for address in wanted[commit]:
                was, kind = desired.resources.get(address), kinds_by_name()[address.kind]
                if was is None or was.state is not State.PRESENT:
                    continue
                # Places of fields keep the whole file.
                applied[address] = replace(was, marks={})
                key = was.parent.key if was.parent is not None else None
                above = desired.resources.get(Address(kind.parent or "", key or ""))
                if above is not None:
                    parents[address] = above
        return former, applied, parents

    def _behind(
        self, entries: _Entries, applied: Mapping[Address, Resource], head: str
    ) -> Iterator[tuple[Address, str]]:
        """Yield the entries that are not current, with their commits.

        Current are those whose commit HEAD contains, those that are declared today as they were
        applied, and those that the files at the merge base declare so.
        """
        today, left = self.loaded.desired.resources, defaultdict[str | None, list[Address]](list)
        commits = {at: commit for at in applied if (commit := entries[at].commit) is not None}
        lacking = self.repository.lacking({*commits.values()}, head)
        bases = {commit: self.repository.merge_base(commit, head) for commit in lacking}
        for address, commit in commits.items():
            if commit in bases and not applied[address].declares_as(today.get(address)):
                left[bases[commit]].append(address)
        for base, addresses in left.items():
            former = self.configuration(base, addresses).resources if base is not None else {}
            for address in addresses:
                if not applied[address].declares_as(former.get(address)):
                    yield address, commits[address]

    def check_direction(self, inventory: Inventory, plan: Plan) -> None:
        """Raise StalePlan if the files are older than what was applied."""
        record, every = inventory.record, inventory.behind
        behind = {every[change.address][:7] for change in plan.changes if change.address in every}
        if record is not None and record.is_newer:
            text = f"is older than the newest applied commit {record.applied[:7]}, where the files "
            text, hint = f"{text}differ", "apply the newest commit"
        elif behind:
            text, hint = (
                f"lacks applied commits: {listed(sorted(behind), _MOST_LISTED)}",
                "merge them",
            )
        else:
            return
        raise StalePlan(f"HEAD {text}; nothing was sent", hint=f"{hint}, or use --rollback")

    def check_pushable(self) -> None:
        """Raise ReconcilerError if HEAD, which would be recorded, is not what is applied."""
        head, branch = self.head, self._branch
        if head is None:
            text, hint = "there is no commit", "commit the files"
        elif files := self.uncommitted:
            text = f"these files differ from it: {listed(files, _MOST_LISTED)}"
            hint = "commit or restore them"
        elif branch is None and is_job(self.environ):
            text = "this clone does not have the trusted branch"
            hint = "fetch the default branch (fetch-depth: 0), set RECONCILER_TRUST_REF"
        elif branch is not None and not self.repository.is_ancestor(head, branch.commit):
            text, hint = f"{branch.ref} does not contain it", "push or merge it first"
        else:
            return
        text = f"--push records HEAD, but {text}; nothing was sent"
        raise ReconcilerError(text, hint=f"{hint}, or omit --push")

    def record(
        self, plan: Plan, ended: tuple[Report, Plan | None], inventory: Inventory, *, push: bool
    ) -> None:
        """Write what a run applied."""
        head, desired = self.head or HEAD, self.loaded.desired
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
            self._objects.contents.clear()
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
            first = error.diagnostics[0]
            place = f"{first.at}: " if first.at is not None else ""
            raise GitUnavailable(
                f"errors in the files at the applied commit {commit[:7]}: {place}{first.message}",
                hint="use --no-inventory to plan without what was applied",
            ) from None

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self.repository)

    def _source(self, commit: str) -> GitSource:
        return GitSource(self._objects, commit)

    def _differing(self, source: GitSource) -> list[str]:
        """Return the files that the workspace and a source do not have in common, sorted."""
        contents = self.loaded.files
        matches = files_by_glob(source, self.loaded.globs)
        selected = {name for names in matches.values() for name in names}
        changed = {name for name, content in contents.items() if not source.has(name, content)}
        return sorted(changed | (selected - contents.keys()))


def _lacking(what: str) -> GitUnavailable:
    return GitUnavailable(f"this shallow clone lacks {what}", hint=shallow_hint())
