"""JSON values, absent values and secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Literal, NoReturn

from msgspec import Struct

from reconciler.model.json_tree import JSON, PLAIN, JSONObject, Path, leaves
from reconciler.model.reference import Reference


class Missing(Enum):
    """The type of `MISSING`, so that a type checker distinguishes absent from null."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> Literal[False]:
        return False


__all__ = [
    "JSON",
    "MISSING",
    "JSONObject",
    "Missing",
    "Path",
    "SecretRef",
    "SecretSource",
    "SecretValue",
    "path_text",
    "put_at",
    "secret_refs",
    "value_at",
]

MISSING: Final = Missing.MISSING
"""An absent field, which is not managed. Null is a value."""


class SecretSource(Struct, frozen=True, order=True):
    """The source of one secret, never its value.

    `source` is the name of a provider. "literal" is a value that is written in the files: its
    `argument` is `<address>:<path>`, and the value stays with the configuration.
    """

    source: str
    argument: str

    @classmethod
    def parse(cls, text: str) -> SecretSource:
        """Return the source that `str` made. Raises ValueError for other text."""
        reference = Reference(text.removeprefix("${").removesuffix("}"))
        if str(reference) != text or not (reference.is_secret and reference.provider):
            raise ValueError(f"'{text}' is not a reference to a secret")
        return cls(reference.provider, reference.argument)

    def __str__(self) -> str:
        return f"${{secret:{self.source}:{self.argument}}}"


class SecretRef(Struct, frozen=True):
    """A value that contains a secret: a reference, or text with references inside.

    The client resolves it when a request is sent, so it has no value that could leak. Comparing it
    with text is always False.
    """

    parts: tuple[str | SecretSource, ...]

    @classmethod
    def of(cls, source: str, argument: str) -> SecretRef:
        """Return the reference for a value that is one secret."""
        return cls((SecretSource(source, argument),))

    @property
    def sources(self) -> tuple[SecretSource, ...]:
        """The references inside, in order."""
        return tuple(part for part in self.parts if isinstance(part, SecretSource))

    @property
    def is_literal(self) -> bool:
        """Whether a part of it is a literal in the files."""
        return any(source.source == "literal" for source in self.sources)

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)


class SecretValue:
    """A resolved secret: can't be printed, pickled, formatted, hashed or compared by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, for request bodies and masks."""
        return self._value

    def __repr__(self) -> str:
        return "SecretValue(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SecretValue):
            return self._value == other._value
        msg = "a secret can only be compared with a secret"
        raise TypeError(msg)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        msg = "a secret can't be pickled or copied"
        raise TypeError(msg)


def path_text(path: Path) -> str:
    """Return a path as text: `destination.config.prefix`, with list positions in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def value_at(value: JSON, path: Path) -> JSON:
    """Return the value at a path, or `MISSING`."""
    for part in path:
        # dict first, since an abstract class is ten times slower.
        if value.__class__ is dict or isinstance(value, Mapping):
            if part not in value:
                return MISSING
            value = value[part]
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(part, int):
            if part >= len(value):
                return MISSING
            value = value[part]
        else:
            return MISSING
    return value


def put_at(values: dict[str, JSON], path: Path, value: JSON) -> None:
    """Set the value at a path of names, and create missing mappings."""
    holder = values
    for part in path[:-1]:
        holder = holder.setdefault(str(part), {})
    holder[str(path[-1])] = value


def secret_refs(value: JSON, path: Path = ()) -> tuple[tuple[Path, SecretRef], ...]:
    """Return every secret reference inside a value with its path, in a fixed order."""
    others = leaves(value, path, skip=PLAIN)
    refs = [(place, leaf) for place, leaf in others if isinstance(leaf, SecretRef)]
    return tuple(sorted(refs, key=lambda ref: ref[0]))
