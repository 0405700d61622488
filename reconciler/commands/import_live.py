"""The use case `import`: write live objects into files.

The texts are planned before they are written. A field whose plan is not empty is left out and
reported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.commands.import_choice import (
    Adoption,
    Choice,
    ImportContext,
    adoptions,
    chosen,
    key_of,
    may_choose,
)
from reconciler.commands.import_drafts import (
    LOOKS_SECRET,
    Drafting,
    Left,
    LiveName,
    NeededSecret,
    left_out,
)
from reconciler.commands.init import SCHEMA_FILE
from reconciler.commands.session import (
    Session,
    connected,
    matched,
    open_session,
    plan_of,
    selected,
    with_integrations,
)
from reconciler.commands.workspace import Workspace
from reconciler.diagnostics import Diagnostic, DiagnosticCollector
from reconciler.editing.editing import NotEditable, edited_texts
from reconciler.editing.writing import FileChange, changed_files, write_files
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.files.resource_files import is_misnamed
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_document import Document
from reconciler.files.yaml_loader import parse
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.kind import Kind
from reconciler.model.live import OTHER_TOOL, Identity, LiveObject, is_of_other_tool
from reconciler.model.public import Public
from reconciler.model.resource import ParentRef
from reconciler.model.schemas import holds_secret
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
from reconciler.planning.inventory import Inventory
from reconciler.planning.match import Matching
from reconciler.planning.select import kinds_named, needs_of, parts
from reconciler.service.live import Depth, read_live

_MOST = 10
_ID = re.compile(r"\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id of an object, which may be in no list."""
_AS_ANOTHER = "to import it as another resource, pass its id"
_WITHOUT_PARENT = "organization"
_RESERVED = re.compile(r"reconciler|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""The name of a workspace file, and names of files and folders that Windows can't check out."""


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
    internal = frozenset({"texts", "changes", "warnings"})
    version = 2

    files: tuple[WrittenFile, ...]
    """The files."""
    adopted: tuple[Adopted, ...] = field(name="resources")
    """Resources that were written."""
    claimed: int = field(name="in_the_files_already")
    """Selected objects that are in the files already."""
    ignored: tuple[LiveName, ...]
    """The selected objects that `policy.ignore` excludes."""
    refused: tuple[Left, ...] = field(name="not_imported")
    """Objects that cannot be imported."""
    left_out: tuple[Left, ...]
    """Fields that are not imported."""
    secrets: tuple[NeededSecret, ...]
    """The environment variables to set."""
    calls: int
    texts: Mapping[str, str]
    """The new texts by path."""
    changes: Mapping[str, FileChange] = {}
    """The change of each file, if not `written`."""
    written: bool = True
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings about the written values: errors with `--strict`."""


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
    filing = Filing.of(session, into)
    depth = Depth(
        in_full=may_choose(choice),
        ids=frozenset(part for text in choice.names for part in parts(text) if _ID.fullmatch(part)),
        parents=frozenset(part for text in choice.parents for part in parts(text)),
    )
    async with connected(session) as transport:
        live = await read_live(transport, session.loaded.desired, kinds=all_kinds(), depth=depth)
        matching, live = await matched(session, transport, live)
        users = {
            item.parent_id or ""
            for item in live.by_identity.values()
            if depth.in_full(item) and uses_any(kinds_by_name()[item.kind], item.body)
        }
        needed = needs_of(selected(session, live, PlanOptions(), matching.inventory)).integrations
        live = await with_integrations(transport, live, users | needed)
        matching = replace(matching, live=live)
        imported = _imported(choice, session, filing, matching, share_secrets=share_secrets)
        if dry_run:
            changes = changed_files(workspace.folder, imported.texts, write=False)
            imported = replace(imported, changes=changes, written=False)
        else:
            # A Ctrl-C during the work above takes effect here, before a file changes.
            await asyncio.sleep(0)
            write_files(workspace.folder, imported.texts)
        return workspace.masked(replace(imported, calls=transport.calls))


def _imported(
    choice: Choice, session: Session, filing: Filing, matching: Matching, *, share_secrets: bool
) -> Imported:
    """Return what is to be written and reported."""
    loaded = session.loaded
    context = ImportContext(
        matching.live,
        claims=matching.owners,
        declared=loaded.declared.keys(),
        recorded={address: entry.id for address, entry in matching.inventory.entries.items()},
        environment=loaded.desired.environment if len(loaded.environments) > 1 else "",
        mask=session.mask,
        share_secrets=share_secrets,
    )
    doubts = {} if choice.names else _doubts(session, matching, context)
    objects = chosen(choice, context)
    ignored = {live.identity for live in matching.ignored}
    refused = {
        live.identity: left_out(live, (), reason)
        for live in objects
        if live.identity not in ignored
        and (reason := _reason_against(live, context) or doubts.get(live.identity)) is not None
    }
    every = adoptions([it for it in objects if it.identity not in {*ignored, *refused}], context)
    new = [item for item in every if item.live.identity not in context.claims]
    drafting = _without_changes(new, context, session, filing, matching.inventory)
    return Imported(
        files=tuple(WrittenFile(name, filing.source.read(name) is None) for name in drafting.texts),
        adopted=tuple(
            Adopted(address, adoption.live.id, adoption.live.name, file)
            for address, (adoption, file) in drafting.written.items()
        ),
        claimed=len(every) - len(new),
        ignored=tuple(LiveName.of(live) for live in objects if live.identity in ignored),
        refused=(*refused.values(), *(left for left in drafting.left if not left.field)),
        left_out=tuple(left for left in drafting.left if left.field),
        secrets=tuple(drafting.secrets),
        calls=0,
        texts=drafting.texts,
        warnings=drafting.warnings,
    )


def _reason_against(live: LiveObject, context: ImportContext) -> str | None:
    """Return why an object cannot be imported, None if it can."""
    if live.identity in context.secret_names:
        known = "the value of a secret of this workspace"
        return f"its name contains {LOOKS_SECRET if holds_secret(live.name) else known}"
    if live.parent_id is not None and context.parent_of(live) is None:
        return f"its {kinds_by_name()[live.kind].parent} (id {live.parent_id}) no longer exists"
    return None


def _doubts(session: Session, matching: Matching, context: ImportContext) -> Mapping[Identity, str]:
    """Return the objects that are imported only if they are named, with the reason."""
    doubled = duplicates_of(matching, session.runtime.now())
    renamed = {item.live.identity: item.match.resource.address for item in doubled}
    doubts: dict[Identity, str] = {}
    for identity, live in context.live.by_identity.items():
        parent = context.parent_of(live)
        address = renamed.get(identity) or (renamed.get(parent.identity) if parent else None)
        if identity in matching.undecided:
            addresses = listed(matching.undecided[identity], _MOST)
            doubts[identity] = f"it may be {addresses}; {_AS_ANOTHER}"
        elif identity in context.claims:
            continue
        elif is_of_other_tool(live.name):
            doubts[identity] = f"it is managed by {OTHER_TOOL}; to import it, pass its id"
        elif address is not None:
            doubts[identity] = (
                f"it is probably {address}, renamed in the service: set its `name`, or "
                f"`lifecycle.renamed_from`; {_AS_ANOTHER}"
            )
    return doubts


def _without_changes(
    new: Sequence[Adoption],
    context: ImportContext,
    session: Session,
    filing: Filing,
    inventory: Inventory,
) -> Drafting:
    """Return texts with an empty plan, without the fields and objects that prevent one.

    Fields are left out once. Objects that still plan a change are left out whole.
    """
    dropped: dict[Address, dict[Path, str]] = {}
    refused: list[Left] = []
    while True:
        drafting = _drafted(new, Drafting(context, session.loaded, dropped), filing)
        changed = _changed(drafting, session, inventory)
        if not changed:
            drafting.left += refused
            return drafting
        hopeless = [address for address, paths in changed.items() if dropped or not paths]
        dropped |= {
            address: dict.fromkeys(paths, "the plan of its live value would not be empty")
            for address, paths in changed.items()
            if address not in hopeless
        }
        left = [adoption.live for adoption in new if adoption.address in hopeless]
        refused += (left_out(live, (), "its plan would not be empty") for live in left)
        new = [adoption for adoption in new if adoption.address not in hopeless]


def _drafted(new: Sequence[Adoption], drafting: Drafting, filing: Filing) -> Drafting:
    """Add the texts of resources to an empty draft."""
    names = {adoption.address: filing.file_of(adoption) for adoption in new}
    files = {name: filing.file(name) for name in {*names.values()}}
    for adoption in new:
        drafting.draft(adoption, files[names[adoption.address]])
    try:
        drafting.texts = edited_texts(filing.source.folder, drafting.edits)
    except NotEditable as error:
        raise error.reworded(hint="import into another file with --into FILE") from None
    return drafting


def _changed(
    drafting: Drafting, session: Session, inventory: Inventory
) -> Mapping[Address, tuple[Path, ...]]:
    """Return new resources with the fields that a plan would change, none if it would create one.

    The plan is that of the workspace with the new texts, for the live state that was read. Their
    warnings are kept. Raises ReconcilerError for a file that would not be read.
    """
    environment = session.loaded.desired.environment
    workspace = replace(session.workspace, environment=environment, strict=False)
    drafted = open_session(workspace, drafts=drafting.texts)
    for address, (_, file) in drafting.written.items():
        if address not in drafted.loaded.declared:
            raise ReconcilerError(
                f"{file} would not be read: `resources:` does not include it, or its folder is "
                "hidden, vendored or another workspace",
                hint=f'choose another place with --into, or add "{PurePosixPath(file).parent}/'
                '*.yaml" to `resources:` in reconciler.yaml',
            )
    new = {str(address) for address in drafting.written}
    drafting.warnings = tuple(
        item for item in drafted.loaded.diagnostics if not new.isdisjoint(item.about[:1])
    )
    plan = plan_of(drafted, drafting.context.live, PlanOptions(), inventory)
    changed: dict[Address, tuple[Path, ...]] = dict.fromkeys(plan.unclear, ())
    for change in plan.effective:
        # An update or a pause. A new object differs in all fields.
        fields = change.fields if change.live_id is not None else ()
        changed[change.address] = (
            *changed.get(change.address, ()),
            *(item.path for item in fields),
        )
    return {address: changed[address] for address in drafting.written if address in changed}


class Filing(Struct, frozen=True):
    """Where files are written: the source they extend.

    `into` is a file or a folder of the workspace, "" for the workspace itself. Without it,
    resources are written beside their siblings. `siblings` are the files by kind and parent.
    """

    source: FolderSource
    into: str
    siblings: Mapping[tuple[str, ParentRef | None], str]

    @classmethod
    def of(cls, session: Session, into: str) -> Filing:
        """Return that of a workspace. Raises BadUsage for an `into` that cannot have resources."""
        if is_misnamed(into):
            raise BadUsage(f"{WORKSPACE_FILE} contains no resources", hint="use another file")
        if leaves_workspace(into):
            raise BadUsage(
                f"--into {into} is outside the workspace",
                hint="use a file or folder below that of reconciler.yaml",
            )
        # The first file with resources of each kind in each parent.
        siblings = {
            (resource.address.kind, resource.parent): resource.mark.file
            for resource in reversed(session.loaded.desired.in_order())
            if resource.mark is not None
        }
        return cls(FolderSource(session.workspace.folder), into, siblings)

    def file_of(self, adoption: Adoption) -> str:
        """Return the file of a resource."""
        kind, into, stem = adoption.kind, PurePosixPath(self.into), adoption.address.key
        if into.suffix in YAML_SUFFIXES:
            return str(into)
        if kind.parent is not None:
            beside = self.siblings.get((kind.name, adoption.parent))
            if beside is not None and not self.into:
                return beside
            kind, stem = kinds_by_name()[kind.parent], _WITHOUT_PARENT
            if (ref := adoption.parent) is not None:
                stem = ref.key or key_of(ref.name or "") or ref.id or stem
        return str(into / kind.collection / _part(kind, stem)) + ".yaml"

    def file(self, name: str) -> Document:
        """Return a file as it is. A new one names its schema."""
        raw = self.source.read(name)
        if raw is None and self.source.read(SCHEMA_FILE) is not None:
            up = "../" * (len(PurePosixPath(name).parts) - 1)
            raw = f"# yaml-language-server: $schema={up}{SCHEMA_FILE}\n".encode()
        return parse(raw or b"", name, DiagnosticCollector())


def _part(kind: Kind, name: str) -> str:
    """Return a part of a path, with the kind as prefix if a file of that name is special.

    It is in lower case: file systems may take names that differ in case only as one.
    """
    name = name.lower()
    return f"{kind.name}-{name}" if is_passed_over(name) or _RESERVED.fullmatch(name) else name
