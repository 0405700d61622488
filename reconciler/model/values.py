"""JSON values, the references and secrets in them, where they were set; addresses of resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Final, Literal, NoReturn, Self, TypeAlias

from msgspec import Struct

from reconciler.diagnostics import Mark

MASK = "***"
"""What is shown in place of a secret."""
SECRET = "secret"  # noqa: S105 - a word of the syntax
UNSET = "${unset}"
"""The value that removes a field of a lower layer."""
UNMANAGED_PREFIX = "id:"
"""Starts the key in the address of an unmanaged object: `<kind>.id:<id>`."""
_PART = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_START = re.compile(r"[^{}\r\n]*[{}]?")
_DEFAULT = ":-"
JSON: TypeAlias = Any
"""A JSON value, with `SecretRef` in place of secrets."""

JSONObject: TypeAlias = Mapping[str, Any]

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value inside a resource, for example ("destination", "config", "prefix")."""


class Address(str):
    """`KIND.KEY`: a text, as in public JSON."""

    __slots__ = ()

    def __new__(cls, kind: str, key: str) -> Self:
        """Return the address of a kind and a key."""
        return str.__new__(cls, f"{kind}.{key}")

    @property
    def kind(self) -> str:
        """The name of its kind."""
        return self.partition(".")[0]

    @property
    def key(self) -> str:
        """The key in the configuration, or `id:ID` of an unmanaged object."""
        return self.partition(".")[2]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the address of a text. Raises ValueError for one without a dot."""
        kind, dot, key = text.partition(".")
        if not (kind and dot and key):
            raise ValueError(f"'{text}' is not an address; write kind.key")
        return cls(kind, key)

    @classmethod
    def of_unmanaged(cls, kind: str, live_id: str) -> Self:
        """Return the address of an unmanaged object."""
        return cls(kind, f"{UNMANAGED_PREFIX}{live_id}")

    @property
    def is_unmanaged(self) -> bool:
        """Whether it names a live object by its id, since no resource claims it."""
        return self.key.startswith(UNMANAGED_PREFIX)


class Missing(Enum):
    """The type of `MISSING`, so that a type checker distinguishes absent from null."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> Literal[False]:
        return False


MISSING: Final = Missing.MISSING
"""An absent field, which is not managed. Null is a value."""


class SecretSource(Struct, frozen=True, order=True):
    """The source of one secret, never its value."""

    source: str
    """Name of a provider, or `literal` for a value that is written in the files."""
    argument: str
    """What the provider takes; of a literal ADDRESS:PATH, for a URL with `=HOST`."""

    @property
    def origin(self) -> str:
        """`env:TOKEN`. The place of a literal is not shown."""
        return self.source if self.source == "literal" else f"{self.source}:{self.argument}"

    def __str__(self) -> str:
        return f"${{secret:{self.source}:{self.argument}}}"


class SecretRef(Struct, frozen=True):
    """A value that contains a secret: a reference, or text with references inside.

    The client resolves it when a request is sent, so it has no value that could leak. Comparing it
    with text is always False.
    """

    parts: tuple[str | SecretSource, ...]
    """The text and the sources of the value, in order."""

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


CLEARED = SecretRef(("null",))
"""Null in a secret field. Like a reference, it is not compared with the live value."""


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
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SecretValue):
            return self._value == other._value
        msg = "a secret can only be compared with a secret"
        raise TypeError(msg)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        msg = "a secret can't be pickled or copied"
        raise TypeError(msg)


@lru_cache(maxsize=10_000)
def path_text(path: Path) -> str:
    """Return a path as text: `destination.config.prefix`, with list positions in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def mapping_of(value: JSON) -> JSONObject:
    """Return a mapping, an empty one for any other value."""
    # An abstract class is ten times slower.
    is_mapping = value.__class__ is dict or (value is not None and isinstance(value, Mapping))
    return value if is_mapping else {}


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


def secret_refs(value: JSON) -> tuple[tuple[Path, SecretRef], ...]:
    """Return every secret reference inside a value with its path, in a fixed order."""
    others = leaves(value, skip=PLAIN)
    refs = [(place, leaf) for place, leaf in others if isinstance(leaf, SecretRef)]
    return tuple(sorted(refs, key=lambda ref: ref[0]))


class Reference(Struct, frozen=True):
    """The text between `${` and `}`.

    An unclosed one has all the text after `${`.
    """

    inside: str
    closed: bool = True

    @property
    def is_secret(self) -> bool:
        """Whether it is written `${secret:…}`."""
        return self.inside.partition(":")[0] == SECRET

    @property
    def provider(self) -> str:
        """The name before the argument, for example `env`."""
        text = self.inside.partition(":")[2] if self.is_secret else self.inside
        return text.partition(":")[0]

    @property
    def argument(self) -> str:
        """The argument: a name, a path or a command. Empty without one."""
        text = self.inside.partition(":")[2] if self.is_secret else self.inside
        return text.partition(":")[2]

    @property
    def start(self) -> str:
        """The reference as it is written, up to a brace or a line break in an unclosed one."""
        return str(self) if self.closed else "${" + (_START.match(self.inside) or [""])[0]

    @property
    def has_default(self) -> bool:
        """Whether a default follows the argument: `${env:NAME:-default}`."""
        return _DEFAULT in self.inside

    def without_default(self, mask: str) -> str:
        """Return the reference as text, with a mask in place of its default."""
        name, sign, _ = self.inside.partition(_DEFAULT)
        return f"${{{name}{sign}{mask}}}" if sign else str(self)

    def __str__(self) -> str:
        return f"${{{self.inside}}}" if self.closed else f"${{{self.inside}"


def with_default(argument: str) -> tuple[str, str | None]:
    """Split `NAME:-default` into the name and the default, None without one."""
    name, sign, default = argument.partition(_DEFAULT)
    return name, default if sign else None


def text_parts(text: str) -> Iterator[str | Reference]:
    """Yield the plain text and the references of a text, in order; `$${` is the plain text `${`.

    An unclosed reference is the last part.
    """
    end = 0
    for match in _PART.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        if match[0] == "$${":
            yield "${"
        elif match[2]:
            yield Reference(match[1])
        else:
            yield Reference(text[match.start() + 2 :], closed=False)
            return
    if end < len(text):
        yield text[end:]


def references_in(text: str) -> tuple[Reference, ...]:
    """Return the closed references of a text, in order."""
    return tuple(Reference(match[1]) for match in _PART.finditer(text) if match[2])


def is_only_references(text: str) -> bool:
    """Return whether a text consists of references without defaults."""
    references = references_in(text)
    plain = "".join(map(str, references)) == text != ""
    return plain and not any(reference.has_default for reference in references)


def holds_reference(text: str) -> bool:
    """Return whether a reference begins in a text."""
    return "${" in text.replace("$${", "")


def escaped_text(text: str) -> str:
    """Return a text with `$${` in place of `${`."""
    return text.replace("${", "$${")


@cache
def form_of(kind: type) -> type | None:
    """Return dict or list for a container's class, None for that of a leaf.

    Cached, since abstract classes are slow.
    """
    if issubclass(kind, Mapping):
        return dict
    return list if issubclass(kind, (list, tuple)) else None


PLAIN: AbstractSet[type] = frozenset({str, int, bool, float, type(None)})
"""The classes of plain JSON leaves: neither secret nor unknown."""


def _items(value: JSON) -> Iterable[tuple[str | int, JSON]] | None:
    """Return the parts of a container with their names or positions, None for a leaf."""
    form = None if value.__class__ in PLAIN else form_of(value.__class__)
    if form is None:
        return None
    items: Iterable[tuple[str | int, JSON]] = value.items() if form is dict else enumerate(value)
    return items


def walk(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield a value and everything inside it with its path, containers before their content."""
    yield path, value
    for name, item in _items(value) or ():
        yield from walk(item, (*path, name))


def leaves(
    value: JSON, path: Path = (), *, skip: AbstractSet[type] = frozenset()
) -> Iterator[tuple[Path, JSON]]:
    """Yield every value that is neither a mapping nor a list, with its path.

    Leaves whose class is in `skip` are left out, which saves most of the time.
    """
    if value.__class__ in skip:
        return
    items = _items(value)
    if items is None:
        yield path, value
        return
    for name, item in items:
        if item.__class__ not in skip:
            yield from leaves(item, (*path, name), skip=skip)


def mapped_leaves(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield every value that is not a mapping, and empty mappings, with their paths."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from mapped_leaves(item, (*path, name))
    else:
        yield path, value


def map_leaves(
    value: JSON, change: Callable[[JSON], JSON], *, keep: AbstractSet[type] = frozenset()
) -> JSON:
    """Return the value with `change` applied to all leaves.

    Leaves whose class is in `keep` never change, which saves most of the time. Unchanged parts are
    shared with the value, not copied.
    """
    form = form_of(value.__class__)
    if form is None:
        return change(value)
    items: Any = value.items() if form is dict else enumerate(value)
    changed: Any = None
    for key, item in items:
        if item.__class__ in keep:
            continue
        new = map_leaves(item, change, keep=keep)
        if new is not item:
            if changed is None:
                changed = form(value)
            changed[key] = new
    return value if changed is None else changed


class FieldOrigin(Struct, frozen=True):
    """A place that sets a field."""

    layer: str
    """One of "resource", "override <environment>", "defaults of <file name>" or "defaults"; for a
    reference, the mapping of the variables, "environment", "default" or "file"."""
    at: Mark | None
    """None outside of files."""
