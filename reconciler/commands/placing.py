"""Which file an imported resource goes into, and the texts of those files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from reconciler.config.drafts import Draft, extended_file, new_file, schema_line
from reconciler.config.sources import Source, leaves_workspace, matching
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.kind import Kind
from reconciler.planning.adopting import Adoption, key_of

SCHEMA_FILE = ".reconciler/resources.schema.json"
"""The schema of resource files inside a workspace, as `init` puts it there for editors."""
_WITHOUT_PARENT = "organization"
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

    def file_of(self, each: Adoption) -> str:
        """The file of a resource."""
        if self.layout is Layout.SINGLE:
            parts = ["resources"]
        elif each.kind.parent is None:
            parts = [each.kind.collection, each.address.key]
        elif self.layout is Layout.BY_PARENT:
            above = next(kind for kind in self.kinds if kind.name == each.kind.parent)
            parts = [above.collection, _stem_of_parent(each)]
        else:
            parts = [each.kind.collection, _stem_of_parent(each), each.address.key]
        return str(PurePosixPath(self.into, *parts)) + ".yaml"

    def texts(self, drafts: Mapping[str, Sequence[Draft]]) -> Placed:
        """The texts of all files.

        Raises ReconcilerError for a file that no glob of the workspace would find.
        """
        there = frozenset(self.source.names())
        found = {file: self._text(file, drafts[file], there) for file in sorted(drafts)}
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


def _stem_of_parent(each: Adoption) -> str:
    ref = each.parent
    if ref is None:
        return _WITHOUT_PARENT
    return ref.key or key_of(ref.name or "") or ref.id or _WITHOUT_PARENT
