"""The result of an import."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.file_change import FileChange
from reconciler.model.live import LiveObject
from reconciler.model.values import Path, path_text


class Left(Struct, frozen=True):
    """A live object or one of its fields that is not imported. `path` is empty for the object."""

    live: LiveObject
    path: Path
    why: str

    @property
    def what(self) -> str:
        """The field, empty for the object."""
        return path_text(self.path)


class Adopted(Struct, frozen=True):
    """A resource that was written, and its file."""

    address: Address
    id: str
    name: str
    file: str


class Namesake(Struct, frozen=True):
    """A written resource, and one of other environments with the same name and parent."""

    address: Address
    elsewhere: Address


class Imported(Struct, frozen=True):
    """What an import did, or would do if not `written`.

    files, before
        The new and the old texts by path.
    claimed
        The number of selected objects that are in the files already.
    ignored
        The selected objects that `policy.ignore` excludes.
    secrets
        The environment variables to set, with the address that needs each.
    beside
        Files that cannot be extended, with those that were written instead.
    gone
        What overwritten files lose.
    changes
        The change of each file, if not `written`.
    mask
        Masks known secrets in output.
    """

    files: Mapping[str, str]
    before: Mapping[str, str]
    adopted: tuple[Adopted, ...]
    claimed: int
    ignored: tuple[LiveObject, ...]
    refused: tuple[Left, ...]
    left_out: tuple[Left, ...]
    secrets: tuple[tuple[str, Address], ...]
    calls: int
    beside: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[tuple[str, str], ...] = ()
    namesakes: tuple[Namesake, ...] = ()
    changes: Mapping[str, FileChange] = field(default_factory=dict)
    written: bool = True
    mask: Callable[[str], str] = str
