"""The use case `import`: write live objects into files.

The texts are planned before they are written. A field whose plan is not empty is left out and
reported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.commands.edits import FileChange, file_changes
from reconciler.commands.import_choice import (
    Adoption,
    Choice,
    ImportContext,
    adoptions,
    chosen,
    key_of,
    may_choose,
)
from reconciler.commands.import_drafts import Drafting, Left, LiveName, NeededSecret
from reconciler.commands.init import SCHEMA_FILE
from reconciler.commands.session import (
    Session,
    connected,
    inventory_of,
    matched,
    open_session,
    plan_of,
    selected,
    with_integrations,
)
from reconciler.commands.workspace import Workspace
from reconciler.diagnostics import DiagnosticCollector
from reconciler.editing.editing import Edit, NotEditable, edited_texts
from reconciler.editing.writing import write_files
from reconciler.errors import BadUsage, GitUnavailable, ReconcilerError
from reconciler.files.loading import Loaded
from reconciler.files.resource_files import is_misnamed
from reconciler.files.sources import FolderSource
from reconciler.files.yaml.document import Document as YamlFile
from reconciler.files.yaml.loader import parse
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.kind import Action, Kind
from reconciler.model.live import OTHER_TOOL, Identity, Live, LiveObject, is_of_other_tool
from reconciler.model.plan import Change, Plan
from reconciler.model.public import Public, derived
from reconciler.model.resource import ParentRef, Resource
from reconciler.model.settings import PlanOptions
from reconciler.model.text import listed
from reconciler.model.values import Address, Path
from reconciler.paths import (
    WORKSPACE_FILE,
    YAML_SUFFIXES,
    is_passed_over,
    leaves_workspace,
)
from reconciler.planning.duplicates import duplicates_of
from reconciler.planning.integrations import uses_any
from reconciler.planning.match import Matching, match
from reconciler.planning.select import kinds_named, needs_of, parts
from reconciler.service.live import Depth, read_live

_MOST = 10
_ID = re.compile(r"\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id of an object, which may be in no list."""
_AS_ANOTHER = "to import it as another resource, pass its id"
_WITHOUT_PARENT = "organization"
_RESERVED = re.compile(r"reconciler|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""The name of a workspace file, and names of files and folders that Windows can't check out."""

Family: TypeAlias = tuple[str, ParentRef | None]
"""The kind of a resource, and its parent."""


class Adopted(Public, frozen=True):
    """A resource that was written, and its file."""

    address: Address
    id: str
    name: str
    file: str


class WrittenFile(Public, frozen=True):
    """A file that was written."""

    path: str
    new: bool


class Imported(Public, frozen=True):
    """What an import did, or would do if not `written`, as `import --format json` prints it."""

    schema = "import"
    internal = frozenset({"files", "existing", "ignored", "changes"})
    version = 2

    files: Mapping[str, str]
    """The new texts by path."""
    existing: frozenset[str]
    """The paths of those that are extended."""
    adopted: tuple[Adopted, ...] = field(name="resources")
    """Resources that were written."""
    claimed: int = field(name="in_the_files_already")
    """Selected objects that are in the files already."""
    ignored: tuple[LiveObject, ...]
    refused: tuple[Left, ...] = field(name="not_imported")
    """Objects that cannot be imported."""
    left_out: tuple[Left, ...]
    """Fields that are not imported."""
    secrets: tuple[NeededSecret, ...]
    """The environment variables to set."""
    calls: int
    changes: Mapping[str, FileChange] = {}
    """The change of each file, if not `written`."""
    written: bool = True

    @derived
    def files_(self) -> tuple[WrittenFile, ...]:
        """The files."""
        return tuple(WrittenFile(name, name not in self.existing) for name in self.files)

    @derived
    def ignored_(self) -> tuple[LiveName, ...]:
        """The selected objects that `policy.ignore` excludes."""
        return tuple(map(LiveName.of, self.ignored))


async def import_live(
    workspace: Workspace,
    choice: Choice | None = None,
    *,
    into: str = "",
    dry_run: bool = False,
    share_secrets: bool = False,
) -> Imported:
    """Write the chosen live objects into files of the workspace, all without `choice`.

    Resources are written beside those of the same parent, or into the folder or file `into`.
    `dry_run` writes nothing. With `share_secrets`, exports with the same account refer to the same
    variables.

    Raises:
        InvalidConfiguration: the existing files have errors; nothing is read.
        BadUsage: a part of the choice matches no live object.
        ReconcilerError: a file would not be read, or must not be overwritten.
        ServiceError.

    """
    choice = choice or Choice()
    kinds = (name for text in choice.kinds for name in kinds_named(text, all_kinds()))
    choice = replace(choice, kinds=tuple(kinds))
    # The first files of a pattern may be those that are imported.
    workspace = replace(workspace, lenient=workspace.lenient | {"no-files"})
    session = open_session(workspace)
    filing = Filing(
        FolderSource(workspace.folder),
        into,
        siblings_of(session.loaded.desired.in_order()),
    )
    depth = Depth(
        in_full=may_choose(choice),
        ids=frozenset(part for text in choice.names for part in parts(text) if _ID.fullmatch(part)),
        parents=frozenset(part for text in choice.parents for part in parts(text)),
    )
    async with connected(session) as transport:
        live = await read_live(transport, session.loaded.desired, kinds=all_kinds(), depth=depth)
        _, live = await matched(session, transport, live)
        users = {
            item.parent_id or ""
            for item in live.by_identity.values()
            if depth.in_full(item) and uses_any(kinds_by_name()[item.kind], item.body)
        }
        needed = needs_of(selected(session, live, PlanOptions())).integrations
        live = await with_integrations(transport, live, users | needed)
        imported = _imported(
            choice, session, filing, live, share_secrets=share_secrets, dry_run=dry_run
        )
        if not dry_run:
            # A Ctrl-C during the work above takes effect here, before a file changes.
            await asyncio.sleep(0)
            write_files(workspace.folder, imported.files)
        return workspace.masked(replace(imported, calls=transport.calls))


def _imported(
    choice: Choice,
    session: Session,
    filing: Filing,
    live: Live,
    *,
    share_secrets: bool,
    dry_run: bool,
) -> Imported:
    """Return what is to be written and reported."""
    loaded = session.loaded
    matching = match(loaded.desired, live, policy=loaded.policy, kinds=all_kinds())
    context = ImportContext(
        live,
        claims=matching.owners,
        declared=loaded.declared.keys(),
        environment=loaded.desired.environment if len(loaded.environments) > 1 else "",
        mask=session.mask,
        share_secrets=share_secrets,
    )
    renamed = _renamed(session, matching)
    objects = chosen(choice, context)
    ignored = {live.identity for live in matching.ignored}
    wanted = [live for live in objects if live.identity not in ignored]
    refused = _refused(wanted, context, matching, None if choice.names else renamed)
    every = adoptions([live for live in wanted if live.identity not in refused], context)
    new = [item for item in every if item.live.identity not in context.claims]

    def replan(attempt: Attempt) -> Plan:
        workspace = replace(session.workspace, environment=loaded.desired.environment, strict=False)
        drafted = open_session(workspace, drafts=attempt.texts)
        check_read(attempt, drafted.loaded.declared.keys())
        return plan_of(drafted, live, PlanOptions())

    attempt = attempt_of(new, context, loaded, filing, replan)
    texts, source = attempt.texts, filing.source
    before = {name: raw for name in texts if (raw := source.read(name)) is not None}
    documents = (parse(before.get(name, b""), name, DiagnosticCollector()) for name in texts)
    drafting = attempt.drafting
    return Imported(
        files=texts,
        existing=frozenset(before),
        adopted=tuple(
            Adopted(address, adoption.live.id, adoption.live.name, file)
            for address, (adoption, file) in attempt.written.items()
        ),
        claimed=len(every) - len(new),
        ignored=tuple(live for live in objects if live.identity in ignored),
        refused=(*refused.values(), *(left for left in drafting.left if not left.path)),
        left_out=tuple(left for left in drafting.left if left.path),
        secrets=tuple(drafting.secrets),
        calls=0,
        changes=file_changes(documents, texts) if dry_run else {},
        written=not dry_run,
    )


def _refused(
    wanted: Sequence[LiveObject],
    context: ImportContext,
    matching: Matching,
    renamed: Mapping[Identity, Address] | None,
) -> Mapping[Identity, Left]:
    """Return the objects that are not imported. `renamed` are resources; None if it is named."""
    refused: dict[Identity, Left] = {}
    for live in wanted:
        reason = _reason_against(live, context, renamed)
        addresses = matching.undecided.get(live.identity)
        if addresses and renamed is not None:
            reason = f"it may be {listed(addresses, _MOST)}; {_AS_ANOTHER}"
        if reason is not None:
            refused[live.identity] = Left(live, (), reason)
    return refused


def _reason_against(
    live: LiveObject, context: ImportContext, renamed: Mapping[Identity, Address] | None
) -> str | None:
    """Return why an object is not imported. `renamed` are resources; None if it is named."""
    parent = context.parent_of(live)
    if live.identity in context.secret_names:
        return "its name contains the value of a secret of this workspace"
    if live.parent_id is not None and parent is None:
        return f"its {kinds_by_name()[live.kind].parent} (id {live.parent_id}) no longer exists"
    if renamed is None or live.identity in context.claims:
        return None
    if is_of_other_tool(live.name):
        return f"it is managed by {OTHER_TOOL}; to import it, pass its id"
    address = renamed.get(live.identity) or (renamed.get(parent.identity) if parent else None)
    if address is None:
        return None
    return (
        f"it is probably {address}, renamed in the service: set its `name`, or "
        f"`lifecycle.renamed_from`; {_AS_ANOTHER}"
    )


def _renamed(session: Session, matching: Matching) -> Mapping[Identity, Address]:
    """Return the objects that are probably resources which were not found by their names."""
    with suppress(GitUnavailable):
        inventory = inventory_of(session, PlanOptions())
        known = replace(matching, inventory=inventory)
        doubled = duplicates_of(known, session.runtime.now())
        return {item.live.identity: item.match.resource.address for item in doubled}
    return {}


class Attempt(Struct, frozen=True):
    """Texts by file, and the adoption and file of each resource in them."""

    texts: Mapping[str, str]
    written: Mapping[Address, tuple[Adoption, str]]
    drafting: Drafting


def attempt_of(
    new: Sequence[Adoption],
    context: ImportContext,
    loaded: Loaded,
    filing: Filing,
    replan: Callable[[Attempt], Plan],
) -> Attempt:
    """Return texts with an empty plan, without the fields and objects that prevent one.

    Fields are left out once. Objects that still plan a change are left out whole. `replan` plans
    the workspace with the texts in place of files, against the live state that was read.
    """
    dropped: dict[Address, dict[Path, str]] = {}
    refused: list[Left] = []
    attempt = _drafted(new, context, loaded, filing, dropped)
    while changed := list(_changed(attempt, replan(attempt))):
        hopeless = [adoption for adoption, paths in changed if dropped or not paths]
        dropped |= {
            adoption.address: dict.fromkeys(paths, "the plan of its live value would not be empty")
            for adoption, paths in changed
            if adoption not in hopeless
        }
        refused += (Left(adoption.live, (), "its plan would not be empty") for adoption in hopeless)
        new = [adoption for adoption in new if adoption not in hopeless]
        attempt = _drafted(new, context, loaded, filing, dropped)
    attempt.drafting.left += refused
    return attempt


def _drafted(
    new: Sequence[Adoption],
    context: ImportContext,
    loaded: Loaded,
    filing: Filing,
    dropped: Mapping[Address, Mapping[Path, str]],
) -> Attempt:
    drafting, files = Drafting(context, loaded.desired.resources, dropped), filing.files(new)
    edits: list[tuple[YamlFile, Edit]] = []
    written: dict[Address, tuple[Adoption, str]] = {}
    for adoption in new:
        document = files[adoption.address]
        key, kind = adoption.parent and adoption.parent.key, adoption.kind
        parent = Address(kind.parent, key) if kind.parent and key else None
        if parent and parent not in written and parent not in loaded.declared:
            drafting.leave(adoption, (), f"its {kind.parent} is not imported")
            continue
        defaults = loaded.defaults_in(document.file).get(kind.name, {})
        edit = drafting.draft(adoption, defaults)
        if edit is not None:
            edits.append((document, edit))
            written[adoption.address] = (adoption, document.file)
    try:
        texts = edited_texts(filing.source.folder, edits)
    except NotEditable as error:
        raise error.reworded(hint="import into another file with --into FILE") from None
    return Attempt(texts, written, drafting)


def _changed(attempt: Attempt, plan: Plan) -> Iterator[tuple[Adoption, tuple[Path, ...]]]:
    """Yield resources with a change, and the fields to leave out; none if that would not help."""
    changes: dict[Address, list[Change]] = {}
    for change in plan.effective:
        changes.setdefault(change.address, []).append(change)
    for address, (adoption, _) in attempt.written.items():
        if address in changes:
            yield adoption, tuple(_fields_of(changes[address], adoption.kind))
        elif address in plan.unclear:
            yield adoption, ()


def _fields_of(changes: Sequence[Change], kind: Kind) -> Iterator[Path]:
    for change in changes:
        if change.action is Action.UPDATE:
            yield from (field.path for field in change.fields)
        elif toggled := kind.toggled(change.action):
            yield (toggled[0].name,)


class Filing(Struct, frozen=True):
    """Where files are written: the source they extend.

    `into` is a file or a folder of the workspace, "" for the workspace itself. Without it,
    resources are written beside their siblings. `siblings` are the files by kind and parent.
    """

    source: FolderSource
    into: str = ""
    siblings: Mapping[Family, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if is_misnamed(self.into):
            raise BadUsage(f"{WORKSPACE_FILE} contains no resources", hint="use another file")
        if leaves_workspace(self.into):
            raise BadUsage(
                f"--into {self.into} is outside the workspace",
                hint="use a file or folder below that of reconciler.yaml",
            )

    def file_of(self, adoption: Adoption) -> str:
        """Return the file of a resource."""
        kind, into, stem = adoption.kind, PurePosixPath(self.into), adoption.address.key
        if into.suffix in YAML_SUFFIXES:
            return str(into)
        if kind.parent is not None:
            beside = self.siblings.get((kind.name, adoption.parent))
            if beside is not None and not self.into:
                return beside
            kind, stem = kinds_by_name()[kind.parent], _parent_stem(adoption)
        return str(into / kind.collection / _part(kind, stem)) + ".yaml"

    def files(self, new: Iterable[Adoption]) -> dict[Address, YamlFile]:
        """Return the file of each resource as it is. A new one names its schema."""
        names = {adoption.address: self.file_of(adoption) for adoption in new}
        files = {name: self._file(name) for name in {*names.values()}}
        return {address: files[name] for address, name in names.items()}

    def _file(self, name: str) -> YamlFile:
        raw = self.source.read(name)
        if raw is None and self.source.read(SCHEMA_FILE) is not None:
            up = "../" * (len(PurePosixPath(name).parts) - 1)
            raw = f"# yaml-language-server: $schema={up}{SCHEMA_FILE}\n".encode()
        return parse(raw or b"", name, DiagnosticCollector())


def check_read(attempt: Attempt, declared: AbstractSet[Address]) -> None:
    """Raise ReconcilerError for a file that would not be read with the workspace."""
    for address, (_, file) in attempt.written.items():
        if address not in declared:
            raise ReconcilerError(
                f"{file} would not be read: `resources:` does not include it, or its folder is "
                "hidden, vendored or another workspace",
                hint=f'choose another place with --into, or add "{PurePosixPath(file).parent}/'
                '*.yaml" to `resources:` in reconciler.yaml',
            )


def siblings_of(resources: Iterable[Resource]) -> Mapping[Family, str]:
    """Return the first file with resources of each kind in each parent."""
    siblings: dict[Family, str] = {}
    for resource in resources:
        if resource.mark is not None:
            siblings.setdefault((resource.address.kind, resource.parent), resource.mark.file)
    return siblings


def _part(kind: Kind, name: str) -> str:
    """Return a part of a path, with the kind as prefix if a file of that name is special.

    It is in lower case: file systems may take names that differ in case only as one.
    """
    name = name.lower()
    return f"{kind.name}-{name}" if is_passed_over(name) or _RESERVED.fullmatch(name) else name


def _parent_stem(adoption: Adoption) -> str:
    ref = adoption.parent
    if ref is None:
        return _WITHOUT_PARENT
    return ref.key or key_of(ref.name or "") or ref.id or _WITHOUT_PARENT
