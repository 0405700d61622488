"""What commands do to files: each file before and after, and the result of an import."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType
from msgspec import field as named

from reconciler.model.address import Address
from reconciler.model.live import LiveObject
from reconciler.model.public import Public, derived
from reconciler.model.values import Path, path_text


class Side(Struct, frozen=True):
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


class FileChange(Struct, frozen=True):
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side


class LiveName(Public, frozen=True):
    """A live object, by its name."""

    kind: str
    id: str
    name: str

    @classmethod
    def of(cls, live: LiveObject) -> LiveName:
        """Return the name of an object."""
        return cls(live.kind, live.id, live.name)


class Left(Public, frozen=True):
    """A live object or one of its fields that is not imported. `path` is empty for the object."""

    internal = frozenset({"live", "path"})

    live: LiveObject
    path: Path
    why: str

    @property
    def what(self) -> str:
        """The field, empty for the object."""
        return path_text(self.path)

    @derived
    def kind(self) -> str:
        """Its kind."""
        return self.live.kind

    @derived
    def id(self) -> str:
        """Its id."""
        return self.live.id

    @derived
    def name(self) -> str:
        """Its live name."""
        return self.live.name

    @derived
    def field(self) -> str | UnsetType:
        """The field, absent for the object."""
        return self.what or UNSET


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


class NeededSecret(Public, frozen=True):
    """An environment variable to set, and the resource that needs it."""

    variable: str
    address: Address


class Imported(Public, frozen=True):
    """What an import did, or would do if not `written`, as `import --format json` prints it."""

    schema = "import"
    internal = frozenset({"files", "existing", "ignored", "changes"})
    version = 2

    files: Mapping[str, str]
    """The new texts by path."""
    existing: frozenset[str]
    """The paths of those that are extended."""
    adopted: tuple[Adopted, ...] = named(name="resources")
    """Resources that were written."""
    claimed: int = named(name="in_the_files_already")
    """Selected objects that are in the files already."""
    ignored: tuple[LiveObject, ...]
    refused: tuple[Left, ...] = named(name="not_imported")
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
