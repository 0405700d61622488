"""Which file an imported resource goes into, and the texts of those files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from reconciler.authoring.drafts import Draft, extended_file, new_file, schema_line
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.importing.adopting import Adoption, key_of
from reconciler.model.kind import Kind
from reconciler.workspace.sources import Source, is_passed_over, leaves_workspace, matching

SCHEMA_FILE = ".reconciler/resources.schema.json"
"""The schema of resource files inside a workspace, as `init` puts it there for editors."""
_WITHOUT_PARENT = "organization"
_NO_NAME = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""What can't be checked out on some systems as the name of a file or folder."""
_MOST_NAMES = 100


class Layout(StrEnum):
    """How imported resources are spread over files."""

    BY_PARENT = "by-project"
    BY_RESOURCE = "by-resource"
    SINGLE = "single"


@dataclass(frozen=True, slots=True)
class Placed:
    """Texts by path, and under which path each file was put: the wanted one may be taken."""

    texts: Mapping[str, str]
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Placing:
    """Where files go: the source they extend, and the globs that have to find them.

    `into` is a folder of the workspace, "" for the workspace itself.
    """

    source: Source
    globs: tuple[str, ...]
    kinds: Sequence[Kind]
    layout: Layout
    into: str = ""
    overwrite: bool = False

    def __post_init__(self) -> None:
        if leaves_workspace(self.into):
            raise BadUsage(
                f"--into {self.into} leads out of the workspace",
                hint="name a folder below reconciler.yaml",
            )
        unseen = [part for part in PurePosixPath(self.into).parts if is_passed_over(part)]
        if unseen:
            raise BadUsage(
                f"--into {self.into} would not be read: folders named {unseen[0]} are passed over",
                hint="choose another folder",
            )

    def file_of(self, each: Adoption) -> str:
        """The file of a resource."""
        if self.layout is Layout.SINGLE:
            parts = ["resources"]
        elif each.kind.parent is None:
            parts = [each.kind.collection, _part(each.kind, each.address.key)]
        elif self.layout is Layout.BY_PARENT:
            above = next(kind for kind in self.kinds if kind.name == each.kind.parent)
            parts = [above.collection, _part(above, _stem_of_parent(each))]
        else:
            stem = _part(each.kind, _stem_of_parent(each))
            parts = [each.kind.collection, stem, _part(each.kind, each.address.key)]
        return str(PurePosixPath(self.into, *parts)) + ".yaml"

    def texts(self, drafts: Mapping[str, Sequence[Draft]]) -> Placed:
        """The texts of all files, in the order of the drafts.

        Raises ReconcilerError for a file that no glob of the workspace would find.
        """
        there = frozenset(self.source.names())
        found = {file: self._text(file, each, there) for file, each in drafts.items()}
        return Placed(
            texts=dict(found.values()), names={file: name for file, (name, _) in found.items()}
        )

    def _text(self, file: str, drafts: Sequence[Draft], there: frozenset[str]) -> tuple[str, str]:
        stem = file.removesuffix(".yaml")
        for number in range(1, _MOST_NAMES):
            name = file if number == 1 else f"{stem}-{number}.yaml"
            self._check_found(name)
            raw = self.source.read(name)
            if raw is None and name in there:
                raise ReconcilerError(f"{name} is there and can't be read")
            if raw is None or self.overwrite:
                head = schema_line(name, self.source, SCHEMA_FILE)
                return name, new_file(drafts, head=head)
            text = extended_file(raw, drafts)
            if text is not None:
                return name, text
        raise ReconcilerError(f"{file} and {_MOST_NAMES} more are there and can't be extended")

    def _check_found(self, name: str) -> None:
        if not any(matching([name], glob) for glob in self.globs):
            raise ReconcilerError(
                f"{name} would not be read: no glob of `resources:` finds it",
                hint=f'add "{PurePosixPath(name).parent / "*.yaml"}" to `resources:` in '
                "reconciler.yaml, or choose another place with --into or --layout",
            )


def _part(kind: Kind, name: str) -> str:
    """A part of a path. What would be passed over, or is no name everywhere, is written longer."""
    return f"{kind.name}-{name}" if is_passed_over(name) or _NO_NAME.fullmatch(name) else name


def _stem_of_parent(each: Adoption) -> str:
    ref = each.parent
    if ref is None:
        return _WITHOUT_PARENT
    return ref.key or key_of(ref.name or "") or ref.id or _WITHOUT_PARENT
