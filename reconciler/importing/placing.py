"""Which file an imported resource is written to, and the texts of those files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.authoring.drafts import Draft, extended_file, new_file, schema_line
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.importing.adopting import Adoption, key_of
from reconciler.model.globs import matching
from reconciler.model.kind import Kind
from reconciler.model.resource import ParentRef, Resource
from reconciler.workspace.sources import WORKSPACE_FILE, Source, is_passed_over, leaves_workspace

SCHEMA_FILE = ".reconciler/resources.schema.json"
"""The schema of resource files inside a workspace, as `init` writes it for editors."""
_WITHOUT_PARENT = "organization"
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names of files and folders that Windows can't check out."""
_MOST_NAMES = 100
_EXTENSIONS = (".yaml", ".yml")

Place: TypeAlias = tuple[str, ParentRef | None]
"""The kind of a resource, and its parent."""


class Layout(StrEnum):
    """How imported resources are distributed over files."""

    BY_PARENT = "by-project"
    BY_RESOURCE = "by-resource"
    SINGLE = "single"


class Placing(Struct, frozen=True):
    """Where files are written: the source they extend, and the globs that must include them.

    `into` is a file or a folder of the workspace, "" for the workspace itself. Without a layout,
    resources are written beside their siblings, otherwise by parent. `siblings` are the files by
    kind and parent.
    """

    source: Source
    globs: tuple[str, ...]
    kinds: Sequence[Kind]
    layout: Layout | None = None
    into: str = ""
    overwrite: bool = False
    siblings: Mapping[Place, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._is_file and self.layout is not None:
            raise BadUsage(f"--layout has no effect with the file --into {self.into}")
        if PurePosixPath(self.into).name == WORKSPACE_FILE:
            raise BadUsage(f"{WORKSPACE_FILE} contains no resources", hint="use another file")
        if leaves_workspace(self.into):
            raise BadUsage(
                f"--into {self.into} is outside the workspace",
                hint="use a file or folder below that of reconciler.yaml",
            )
        ignored = [part for part in PurePosixPath(self.into).parts if is_passed_over(part)]
        if ignored:
            raise BadUsage(
                f"--into {self.into} would not be read: folders named {ignored[0]} are ignored",
                hint="use another folder",
            )
        self._check_workspace(PurePosixPath(self.into), f"--into {self.into}")

    @property
    def _is_file(self) -> bool:
        return PurePosixPath(self.into).suffix in _EXTENSIONS

    def file_of(self, adoption: Adoption) -> str:
        """Return the file of a resource."""
        kind = adoption.kind
        if self._is_file:
            return str(PurePosixPath(self.into))
        beside = self.siblings.get((kind.name, adoption.parent))
        if beside is not None and self.layout is None and not (self.into or self.overwrite):
            return beside
        if self.layout is Layout.SINGLE:
            parts = ["resources"]
        elif kind.parent is None:
            parts = [kind.collection, _part(kind, adoption.address.key)]
        elif self.layout is not Layout.BY_RESOURCE:
            parent = next(parent for parent in self.kinds if parent.name == kind.parent)
            parts = [parent.collection, _part(parent, _parent_stem(adoption))]
        else:
            stem = _part(kind, _parent_stem(adoption))
            parts = [kind.collection, stem, _part(kind, adoption.address.key)]
        return str(PurePosixPath(self.into, *parts)) + ".yaml"

    def texts(self, drafts: Mapping[str, Sequence[Draft]]) -> dict[str, tuple[str, str]]:
        """Return the name and the text of each file, in the order of the drafts.

        The name is another one for a file that can't be extended. Raises ReconcilerError for a
        file that no glob of the workspace includes.
        """
        existing = frozenset(self.source.names())
        return {file: self._text(file, members, existing) for file, members in drafts.items()}

    def _text(
        self, file: str, drafts: Sequence[Draft], existing: frozenset[str]
    ) -> tuple[str, str]:
        """Return the name and the text of a file, or of `file-2` if it can't be extended."""
        path = PurePosixPath(file)
        for number in range(1, _MOST_NAMES):
            name = file if number == 1 else f"{path.with_suffix('')}-{number}{path.suffix}"
            self._check_included(name)
            raw = self.source.read(name)
            if raw is None and name in existing:
                raise ReconcilerError(f"{name} exists and can't be read")
            if raw is None or self.overwrite:
                return name, new_file(drafts, head=schema_line(name, self.source, SCHEMA_FILE))
            text = extended_file(raw, drafts)
            if text is not None:
                return name, text
        raise ReconcilerError(f"{file} and {_MOST_NAMES} more files exist and can't be extended")

    def _check_workspace(self, path: PurePosixPath, name: str) -> None:
        for folder in (path, *path.parents):
            if folder.name and self.source.read(str(folder / WORKSPACE_FILE)) is not None:
                raise BadUsage(
                    f"{name} is in another workspace",
                    hint=f"use -C {folder}, or choose another place with --into",
                )

    def _check_included(self, name: str) -> None:
        self._check_workspace(PurePosixPath(name), name)
        if not any(matching([name], glob) for glob in self.globs):
            raise ReconcilerError(
                f"{name} would not be read: no glob of `resources:` includes it",
                hint=f'add "{PurePosixPath(name).parent / "*.yaml"}" to `resources:` in '
                "reconciler.yaml, or choose another place with --into or --layout",
            )


def siblings_of(resources: Iterable[Resource], kinds: Mapping[str, Kind]) -> Mapping[Place, str]:
    """Return the file with most resources of each kind in each parent."""
    counts: dict[Place, Counter[str]] = {}
    for resource in resources:
        if kinds[resource.address.kind].parent is not None and resource.mark is not None:
            place = (resource.address.kind, resource.parent)
            counts.setdefault(place, Counter())[resource.mark.file] += 1
    return {
        place: min(files, key=lambda file: (-files[file], file)) for place, files in counts.items()
    }


def _part(kind: Kind, name: str) -> str:
    """Return a part of a path, with the kind as prefix if the name is ignored or reserved."""
    return f"{kind.name}-{name}" if is_passed_over(name) or _RESERVED.fullmatch(name) else name


def _parent_stem(adoption: Adoption) -> str:
    ref = adoption.parent
    if ref is None:
        return _WITHOUT_PARENT
    return ref.key or key_of(ref.name or "") or ref.id or _WITHOUT_PARENT
