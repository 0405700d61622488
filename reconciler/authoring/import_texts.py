"""The files that import writes: their texts, checked by a plan, and what they replace.

The texts are planned before they are written. A field whose plan is not empty is left out and
reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.authoring.editing import Edit, NotEditable
from reconciler.authoring.import_choice import Adoption, ImportContext, key_of
from reconciler.authoring.import_drafts import Drafting
from reconciler.authoring.placing import edited_texts
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.files import Left
from reconciler.model.kind import Action, Kind
from reconciler.model.plan import Change, Plan
from reconciler.model.resource import ParentRef, Resource
from reconciler.model.values import Path
from reconciler.workspace.loading import Loaded
from reconciler.workspace.paths import (
    WORKSPACE_FILE,
    YAML_SUFFIXES,
    is_passed_over,
    leaves_workspace,
)
from reconciler.workspace.resource_files import is_misnamed
from reconciler.workspace.sources import FolderSource
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse

SCHEMA_FILE = ".reconciler/resources.schema.json"
"""The schema of resource files inside a workspace, as `init` writes it for editors."""
_WITHOUT_PARENT = "organization"
_RESERVED = re.compile(r"reconciler|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""The name of a workspace file, and names of files and folders that Windows can't check out."""

Family: TypeAlias = tuple[str, ParentRef | None]
"""The kind of a resource, and its parent."""


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
    edits: list[tuple[Document, Edit]] = []
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

    def files(self, new: Iterable[Adoption]) -> dict[Address, Document]:
        """Return the file of each resource as it is. A new one names its schema."""
        names = {adoption.address: self.file_of(adoption) for adoption in new}
        files = {name: self._file(name) for name in {*names.values()}}
        return {address: files[name] for address, name in names.items()}

    def _file(self, name: str) -> Document:
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
    """Return a part of a path, with the kind as prefix if the name is ignored or reserved.

    It is in lower case: file systems may take names that differ in case only as one.
    """
    name = name.lower()
    return f"{kind.name}-{name}" if is_passed_over(name) or _RESERVED.fullmatch(name) else name


def _parent_stem(adoption: Adoption) -> str:
    ref = adoption.parent
    if ref is None:
        return _WITHOUT_PARENT
    return ref.key or key_of(ref.name or "") or ref.id or _WITHOUT_PARENT
