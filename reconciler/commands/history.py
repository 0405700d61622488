"""The git history of a workspace: what was applied, and files that HEAD lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import GitUnavailable, ReconcilerError, StalePlan
from reconciler.files.loading import Loaded, load_at
from reconciler.files.resource_files import declared_in_others, files_by_glob
from reconciler.git.ci import head_branch_of, is_job
from reconciler.git.inventory import REMOTE, damaged, read_entries, record, ref_of
from reconciler.git.repository import (
    HEAD,
    GitSource,
    Objects,
    Repository,
    TrustedBranch,
    shallow_hint,
    trusted_branch,
)
from reconciler.kinds import kinds_by_name
from reconciler.model.event import Report
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.text import listed, printable, shortened
from reconciler.model.values import Address, SecretRef, secret_refs
from reconciler.paths import content_id
from reconciler.planning.inventory import Applied, Inventory, Record, entries_after, hash_of_secrets

_LONGEST_REF = 80
_MOST_LISTED = 5
_MOST_VERSIONS = 4
"""Of each file, on average, that are kept while commits are loaded."""


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
        contents = self._contents(desired.secret_users)
        secret = {at for users in desired.secret_users.values() for at in users}
        hashes = {at: hash_of_secrets(desired.resources[at], contents) for at in secret}
        today = Inventory(hashes=hashes, contents=contents, trusted=self._trusted())
        if head is None:
            return today
        tip = repository.fetched(REMOTE, self.ref) if push else repository.tip(self.ref)
        if tip is None:
            return today
        entries, newest = read_entries(repository, tip), repository.commit(f"{tip}^1")
        if newest is None and repository.is_shallow:
            raise _lacking(f"the newest applied commit, the parent of {tip[:7]}")
        if newest is None:
            raise damaged(tip, "this clone lacks the newest applied commit, its parent")
        times = repository.times({newest, *(one.commit for one in entries.values() if one.commit)})
        lacking = repository.lacking(times, head) if not rollback else ()
        every = {
            at: Applied(**asdict(entry), uncounted=self._doubt(entry.commit, times))
            for at, entry in entries.items()
        }
        every |= dict(self._declared(every, times))
        for at in tuple(self._behind(every, lacking, head)):
            every[at] = replace(every[at], behind=True)
        unsure = (item.commit for item in every.values() if item.uncounted or item.behind)
        if (commit := next(filter(None, unsure), None)) is not None and repository.is_shallow:
            raise _lacking(f"the history of the applied commit {commit[:7]}")
        for at, why in self._elsewhere(every):
            every[at] = replace(every[at], elsewhere=why)
        is_other = self._objects.tree(head) != self._objects.tree(newest)
        is_newer = is_other and not rollback and repository.is_ancestor(head, newest)
        commits = repository.count_since(newest, head)
        record = Record(self.ref, tip, newest, times[newest], commits, is_newer)
        former = self.configuration(newest, ())
        return replace(today, every=every, former=former, record=record)

    def _trusted(self) -> Mapping[Address, Resource]:
        """Return the resources of the trusted branch, none if it is unknown or has errors.

        Nothing was applied from files with errors, and what was applied counts by itself.
        """
        with suppress(GitUnavailable):
            return self.configuration(self._branch.commit).resources if self._branch else {}
        return {}

    @cached_property
    def _line(self) -> Collection[str]:
        """The commits of the trusted branch."""
        branch = self._branch
        return self.repository.first_parents(branch.commit) if branch is not None else ()

    def _doubt(self, commit: str | None, known: Collection[str]) -> str:
        """Return why the commit of an entry cannot be believed, "" if it can."""
        in_job = is_job(self.environ)
        if commit is None:
            return "it was applied from files that were not committed" if in_job else ""
        if commit not in known:
            return f"its commit {commit[:7]} is not in this clone"
        if in_job and commit not in self._line:
            branch = self._branch.ref if self._branch is not None else "the trusted branch"
            return f"its commit {commit[:7]} is not in the first parents of {branch}"
        return ""

    def _contents(self, refs: Iterable[SecretRef], commit: str | None = None) -> dict[str, str]:
        """Return the ids of the contents of tracked files that secrets come from, by reference.

        The files are those at a commit, else those of today.
        """
        contents, at = dict[str, str](), self._source(commit or self.head or HEAD)
        for source in {source for ref in refs for source in ref.sources if source.source == "file"}:
            content = at.id_of(source.argument)
            if content is not None and commit is None:
                file = self.folder / source.argument
                content = content_id(file.read_bytes()) if file.is_file() else None
            if content is not None:
                contents[source.origin] = content
        return contents

    def _elsewhere(self, every: Mapping[Address, Applied]) -> Iterator[tuple[Address, str]]:
        """Yield removed addresses that other files may declare, with the reason."""
        loaded, names = self.loaded, dict[Address, tuple[str, str | None]]()
        for address, entry in every.items():
            if entry.uncounted or address in loaded.desired.resources:
                continue
            if address in loaded.declared:
                yield address, f"its `environments` leave out {loaded.desired.environment}"
            else:
                names[address] = entry.name, entry.above.name if entry.above is not None else None
        if names:
            read = {self.folder / name for name in loaded.files.keys() - loaded.skipped}
            yield from declared_in_others(
                self.repository, self.folder, read, names, service=loaded.desired
            )

    def _declared(
        self, every: Mapping[Address, Applied], times: Mapping[str, datetime]
    ) -> Iterator[tuple[Address, Applied]]:
        """Yield entries with how the files at their commits declare them.

        Nothing else of a commit is loaded or kept: many commits of many resources need no more
        memory.
        """
        wanted = defaultdict[str, list[Address]](list)
        for address, entry in every.items():
            if entry.commit is not None and not entry.uncounted:
                wanted[entry.commit].append(address)
        # Neighbours have most files in common.
        for commit in sorted(wanted, key=lambda commit: times[commit], reverse=True):
            desired = self.configuration(commit, wanted[commit])
            for address in wanted[commit]:
                was = desired.resources.get(address)
                if was is None or was.state is not State.PRESENT:
                    continue
                key = was.parent.key if was.parent is not None else None
                parent = Address(kinds_by_name()[address.kind].parent or "", key or "")
                yield (
                    address,
                    replace(
                        every[address],
                        was=replace(was, marks={}),  # Places of fields keep the whole file.
                        above=desired.resources.get(parent),
                        contents=self._contents((ref for _, ref in secret_refs(was.spec)), commit),
                        time=times[commit],
                    ),
                )

    def _behind(
        self, every: Mapping[Address, Applied], lacking: Collection[str], head: str
    ) -> Iterator[Address]:
        """Yield the entries that are not current, of the commits that HEAD lacks.

        Current is what the files declare as it was applied, now or where HEAD left the branch: then
        only HEAD changed it since.
        """
        today = self.loaded.desired.resources
        bases = {commit: self.repository.merge_base(commit, head) for commit in lacking}
        left = defaultdict[str | None, list[tuple[Address, Resource]]](list)
        for at, entry in every.items():
            if entry.was is None or entry.commit not in bases:
                continue
            if not entry.was.declares_as(today.get(at)):
                left[bases[entry.commit]].append((at, entry.was))
        for base, pairs in left.items():
            wanted = {at for at, _ in pairs}
            former = self.configuration(base, wanted).resources if base is not None else {}
            yield from (at for at, was in pairs if not was.declares_as(former.get(at)))

    def check_direction(self, inventory: Inventory, plan: Plan) -> None:
        """Raise StalePlan if the files are older than what was applied."""
        record, every = inventory.record, inventory.behind
        if record is not None and record.is_newer:
            problem = f"is older than the newest applied commit {record.applied[:7]}, where the "
            problem, hint = f"{problem}files differ", "apply the newest commit"
        elif behind := {every[at][:7] for at in plan.addresses & every.keys()}:
            commits = listed(sorted(behind), _MOST_LISTED)
            problem, hint = f"lacks applied commits: {commits}", "merge them"
        else:
            return
        raise StalePlan(f"HEAD {problem}; nothing was sent", hint=f"{hint}, or use --rollback")

    def check_pushable(self) -> None:
        """Raise ReconcilerError if HEAD, which would be recorded, is not what is applied."""
        head, branch = self.head, self._branch
        if head is None:
            problem, hint = "there is no commit", "commit the files"
        elif files := self.uncommitted:
            problem = f"these files differ from it: {listed(files, _MOST_LISTED)}"
            hint = "commit or restore them"
        elif branch is None and is_job(self.environ):
            problem = "this clone does not have the trusted branch"
            hint = "fetch the default branch (fetch-depth: 0), set RECONCILER_TRUST_REF"
        elif branch is not None and not self.repository.is_ancestor(head, branch.commit):
            problem, hint = f"{branch.ref} does not contain it", "push or merge it first"
        else:
            return
        problem = f"--push records HEAD, but {problem}; nothing was sent"
        raise ReconcilerError(problem, hint=f"{hint}, or omit --push")

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
            text = f"errors in the files at the applied commit {commit[:7]}: {place}{first.message}"
            hint = "use --no-inventory to plan without what was applied"
            raise GitUnavailable(text, hint=hint) from None

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
