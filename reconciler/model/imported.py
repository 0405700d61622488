"""What import did: files, resources, secrets to set, and what it left where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.live import LiveObject
from reconciler.model.values import Path, path_text


@dataclass(frozen=True, slots=True)
class Left:
    """A live object, or a field of it, that does not go into the files, and why.

    `path` is empty where it is the whole object.
    """

    live: LiveObject
    path: Path
    why: str

    @property
    def what(self) -> str:
        """The field, or nothing."""
        return path_text(self.path)


@dataclass(frozen=True, slots=True)
class Adopted:
    """One resource that was written, and the file that has it."""

    address: Address
    id: str
    name: str
    file: str


@dataclass(frozen=True, slots=True)
class Namesake:
    """A resource that was written, and one of other environments that has its name and place."""

    address: Address
    elsewhere: Address


@dataclass(frozen=True, slots=True)
class Side:
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


def _plainly(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Imported:
    """What import did, or would do.

    `files` are the new texts by path, `before` the old ones of those that were there. `claimed`
    is the number of chosen objects that were in the files already, `ignored` are those that the
    policy says never to touch. `secrets` are the environment variables to set, with the address
    that needs each. `unmatched` are parts of the choice that fit nothing.

    `beside` are files that can't be extended, with those that were written instead. `gone` is what
    files say no more that were written again. `sides` are there where nothing was `written`. `mask`
    hides known secrets in whatever is printed of it.
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
    unmatched: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[tuple[str, str], ...] = ()
    namesakes: tuple[Namesake, ...] = ()
    sides: Mapping[str, tuple[Side, Side]] = field(default_factory=dict)
    written: bool = True
    mask: Callable[[str], str] = _plainly
