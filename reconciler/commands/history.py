"""The git history of a workspace: what was applied, and files that HEAD lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from reconciler.files.sources import FolderSource
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
from reconciler.model.event import Report
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Entry, ParentRef, Resource
from reconciler.model.text import listed, printable, shortened
from reconciler.model.values import Address, SecretRef, secret_refs
from reconciler.paths import content_id
from reconciler.planning.inventory import Applied, Inventory, Record, hash_of_secrets, parent_in

_LONGEST_REF = 80
_MOST_LISTED = 5
_MOST_VERSIONS = 4
"""Of each file, on average, that are kept while commits are loaded."""


# Without slots, since cached properties need a dict.
class WorkspaceHistory(Struct, frozen=True, dict=True):
    """The history of a loaded workspace. Methods raise GitUnavailable if git fails.

    `head` is the commit of HEAD while it was loaded, None before the first commit.
    """

    repository: Repository
    folder: Path
    loaded: Loaded
    environ: Mapping[str, str]
    head: str | None

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
        return self._differing(self._source(self.head))

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
        tip = repository.fetched(REMOTE, self.ref) if push else repository.tip(self.ref)
        newest = repository.commit(f"{tip}^1") if tip is not None else None
        today = Inventory(hashes=hashes, contents=contents, trusted=self._trusted(newest))
        if head is None or tip is None:
            return today
        entries = read_entries(repository, tip)
        if newest is None and repository.is_shallow:
            raise _lacking(f"the newest applied commit, the parent of {tip[:7]}")
        if newest is None:
            raise damaged(tip, "this clone lacks the newest applied commit, its parent")
        times = repository.times({newest, *(one.commit for one in entries.values() if one.commit)})
        every = dict(self._applied(entries, times, rollback=rollback))
        unsure = (item.commit for item in every.values() if item.uncounted or item.behind)
        if (commit := next(filter(None, unsure), None)) is not None and repository.is_shallow:
            raise _lacking(f"the history of the applied commit {commit[:7]}")
        is_other = self._objects.tree(head) != self._objects.tree(newest)
        is_newer = is_other and not rollback and repository.is_ancestor(head, newest)
        commits = repository.count_since(newest, head)
        record = Record(self.ref, tip, newest, times[newest], commits, is_newer)
        former, elsewhere = self.configuration(newest, frozenset()), dict(self._elsewhere(every))
        return replace(today, every=every, elsewhere=elsewhere, former=former, record=record)

    def _trusted(self, newest: str | None) -> Mapping[Address, Resource]:
        """Return the resources of the trusted branch, none if it has errors.

        If it is unknown, those of the newest applied commit, but not in a job: whoever may push
        writes that. Nothing was applied from files with errors, and what was applied counts by
        itself.
        """
        with suppress(GitUnavailable):
            other = None if is_job(self.environ) else newest
            commit = self._branch.commit if self._branch else other
            return self.configuration(commit).resources if commit else {}
        return {}

    def _contents(self, refs: Iterable[SecretRef], commit: str | None = None) -> Mapping[str, str]:
        """Return the ids of the contents of tracked files that secrets come from, by reference.

        The files are those at a commit, else those of today.
        """
        tracked = self._source(commit or self.head)
        source = FolderSource(self.folder) if commit is None else tracked
        files = {of for ref in refs for of in ref.sources if of.source == "file"}
        files = {of for of in files if tracked.read(of.argument) is not None}
        contents = {of.origin: source.read(of.argument) for of in files}
        return {origin: content_id(raw) for origin, raw in contents.items() if raw is not None}

    def _elsewhere(self, every: Mapping[Address, Applied]) -> Iterator[tuple[Address, str]]:
        """Yield removed addresses that other files may declare, with the reason."""
        loaded, names = self.loaded, dict[Address, tuple[str, str | None]]()
        for address, entry in every.items():
            if entry.uncounted or address in loaded.desired.resources:
                continue
            if address in loaded.declared:
                yield address, f"`environments` leaves out {loaded.desired.environment}"
            else:
                names[address] = entry.name, entry.above.name
        if names:
            read = {self.folder / name for name in loaded.files.keys() - loaded.skipped}
            yield from declared_in_others(
                self.repository, self.folder, read, names, service=loaded.desired
            )

    def _applied(
        self, entries: Mapping[Address, Entry], times: Mapping[str, datetime], *, rollback: bool
    ) -> Iterator[tuple[Address, Applied]]:
        """Yield entries with how the files at their commits declare them.

        Of each commit only that is loaded and kept: many commits of many resources need no more
        memory. Those that HEAD lacks are current if their files declare what today's do, or what
        those do where HEAD left the branch: then only HEAD changed it since.
        """
        repository, today = self.repository, self.loaded.desired.resources
        head, line = self.head or HEAD, None
        lacking = repository.lacking(times, head) if not rollback else ()
        if is_job(self.environ):
            line = repository.first_parents(self._branch.commit) if self._branch else ()
        by_commit = defaultdict[str, set[Address]](set)
        for at, entry in entries.items():
            by_commit[entry.commit or ""].add(at)
        # Neighbours have most files in common.
        for commit in sorted(by_commit, key=lambda commit: str(times.get(commit)), reverse=True):
            addresses, doubt = by_commit[commit], _doubt(commit, times, line)
            then = self.configuration(commit, addresses).resources if commit and not doubt else {}
            was = {at: then[at] for at in addresses & then.keys()}
            lacked = was if commit in lacking else {}
            others = {at for at, it in lacked.items() if not it.declares_as(today.get(at))}
            base = repository.merge_base(commit, head) if others else None
            former = self.configuration(base, others).resources if base is not None else {}
            refs = (ref for item in was.values() for _, ref in secret_refs(item.spec))
            contents = self._contents(refs, commit)
            for at in addresses:
                item = Applied(
                    **asdict(entries[at]),
                    # Places of fields keep the whole file.
                    was=replace(was[at], marks={}) if at in was else None,
                    above=parent_in(then, was[at]) if at in was else ParentRef(),
                    contents=contents,
                    time=times.get(commit),
                    behind=at in others and not was[at].declares_as(former.get(at)),
                    uncounted=doubt,
                )
                yield at, item

    def check_direction(self, inventory: Inventory, plan: Plan) -> None:
        """Raise StalePlan if HEAD lacks what was applied, and the plan would change it back."""
        record, behind = inventory.record, inventory.behind
        commits = {behind[at][:7] for at in plan.addresses & behind.keys()}
        commits |= {record.applied[:7]} if record is not None and record.is_newer else set()
        if commits:
            lacking = f"HEAD lacks applied commits: {listed(sorted(commits), _MOST_LISTED)}"
            hint = "merge them, check out the newest commit, or use --rollback"
            raise StalePlan(f"{lacking}; nothing was sent", hint=hint)

    def check_pushable(self) -> None:
        """Raise ReconcilerError if HEAD, which would be recorded, is not what is applied."""
        branch, problem = self._branch, ""
        if files := self.uncommitted:
            problem = f"these files differ from it: {listed(files, _MOST_LISTED)}"
            hint = "commit or restore them"
        elif branch is None and is_job(self.environ):
            problem = "this clone does not have the trusted branch"
            hint = "fetch the default branch (fetch-depth: 0), set RECONCILER_TRUST_REF"
        elif branch and not self.repository.is_ancestor(self.head or HEAD, branch.commit):
            problem, hint = f"{branch.ref} does not contain it", "push or merge it first"
        if problem:
            problem = f"--push records HEAD, but {problem}; nothing was sent"
            raise ReconcilerError(problem, hint=f"{hint}, or omit --push")

    def record(
        self, plan: Plan, ended: tuple[Report, Plan | None], inventory: Inventory, *, push: bool
    ) -> None:
        """Write what a run applied."""
        head = self.head or HEAD
        own = inventory.after(plan, ended, self.loaded.desired, (head, self.configuration(head)))
        began = inventory.record.tip if inventory.record is not None else None
        record(self.repository, self.ref, head, own, began=began, push=push)

    def configuration(self, commit: str, wanted: AbstractSet[Address] | None = None) -> Desired:
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
                wanted=wanted,
            )
        except InvalidConfiguration as error:
            first = error.diagnostics[0]
            problem = f"{first.at or self.folder}: {first.message}"
            text = f"errors in the files at the applied commit {commit[:7]}: {problem}"
            hint = "use --no-inventory to plan without what was applied"
            raise GitUnavailable(text, hint=hint) from None

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self.repository)

    def _source(self, commit: str | None) -> GitSource:
        return GitSource(self._objects, commit or HEAD)

    def _differing(self, source: GitSource) -> list[str]:
        """Return the files that the workspace and a source do not have in common, sorted."""
        contents = self.loaded.files
        selected = set[str]().union(*files_by_glob(source, self.loaded.globs).values())
        changed = {name for name, content in contents.items() if not source.has(name, content)}
        return sorted(changed | (selected - contents.keys()))


def _lacking(what: str) -> GitUnavailable:
    return GitUnavailable(f"this shallow clone lacks {what}", hint=shallow_hint())


def _doubt(commit: str, known: Collection[str], line: Collection[str] | None) -> str:
    """Return why the commit of entries cannot be believed, "" if it can.

    `line` are the commits of the trusted branch in a job, None elsewhere.
    """
    if not commit:
        return "" if line is None else "applied from files that were not committed"
    if commit not in known:
        return f"its commit {commit[:7]} is not in this clone"
    if line is not None and commit not in line:
        return f"its commit {commit[:7]} is not in the first parents of the trusted branch"
    return ""
