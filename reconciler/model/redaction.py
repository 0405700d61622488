"""Detect and mask secrets in files, messages and plans."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias
from urllib.parse import quote

from reconciler.model.json_tree import JSON, walk
from reconciler.model.schema_files import known_schema, schema_names
from reconciler.model.values import SecretValue
from reconciler.model.wording import printable

Mask: TypeAlias = Callable[[str], str]
"""A function that masks every known secret in a text."""
MASK = "***"
SHORTEST_MASKED = 4
"""Masking shorter values would mask much of the output, and reveal them."""

_COMMON_NAMES = ("api_key", "token", "password", "secret")
_NAME_IN_FILES = r"[\w.-]*(?:secret|passw|passphrase|token|private_?key|api_?key|webhook)[\w.-]*"
"""Names of unknown keys in files that are masked, such as misspelt ones."""
_NAME_IN_BODIES = re.compile(
    r"secret|passw|passphrase|pwd|token|credential|authorization|webhook|keyfile|dsn"
    r"|connection_?(string|url|uri)|service_?account|access_?key"
    r"|(?<!primary)(?<!partition)(?<!sort)(?<!version)(?<!cluster)(?<!public)_key$"
)
"""Names below open fields of live objects that are not imported."""
_VALUE = re.compile(
    r"://[^\s/@:]*:[^\s/@]+@|-----BEGIN [A-Z ]*PRIVATE KEY|\bph[xs]_[A-Za-z0-9_-]{8}"
)
"""A password in a URL, a private key, or an API key of the service."""
_ELSEWHERE = re.compile(
    # The default of a secret, and the password in a URL.
    r"(?<=\$\{secret:env:)[^{}]*?:-(?P<value>[^{}]+)"
    r"|(?<=://)[^\s/@:]*:(?P<password>[^\s/@]+)(?=@)"
)


def looks_secret(name: str) -> bool:
    """Return whether the name of an unknown field resembles that of a secret."""
    return name in secret_names() or _NAME_IN_BODIES.search(name.casefold()) is not None


def holds_secret(text: str) -> bool:
    """Return whether a value contains what looks like a secret, in any field."""
    return _VALUE.search(text) is not None


def redact_line(line: str) -> str:
    """Return a line with values after names of secrets masked, in comments too."""
    return masked(line, secret_spans(line))


def masked(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a line with the given spans masked."""
    parts: list[str] = []
    end = 0
    for first, last in spans:
        parts += [line[end:first], MASK]
        end = last
    return "".join([*parts, line[end:]])


def secret_spans(line: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of secrets in a line, without overlaps."""
    spans = [match.span("value") for match in _assignment().finditer(line)]
    spans += [match.span(str(match.lastgroup)) for match in _ELSEWHERE.finditer(line)]
    apart: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if not apart or first >= apart[-1][1]:
            apart.append((first, last))
    return tuple(apart)


def redact_text(text: str, secrets: Iterable[SecretValue]) -> str:
    """Return a text with known secrets masked, plain, in base64 and URL-encoded."""
    for secret in secrets:
        for form in _forms(secret.reveal()):
            text = text.replace(form, MASK)
    return text


def redact_value(value: JSON, mask: Mask) -> JSON:
    """Return a value with all text inside it masked, keys included."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): redact_value(item, mask) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_value(item, mask) for item in value]
    return value


def is_redacted(value: JSON) -> bool:
    """Return whether a part of a value is masked, so that the original value is lost."""
    return any(isinstance(item, str) and MASK in item for _, item in walk(value))


@lru_cache(maxsize=1024)
def _forms(value: str) -> tuple[str, ...]:
    """Return the forms in which a secret may appear, escaped as in messages too, longest first."""
    if len(value) < SHORTEST_MASKED:
        return ()
    raw = value.encode()
    forms = {
        value,
        quote(value, safe=""),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(raw).decode().rstrip("="),
        value.replace("\n", "\\n"),
        printable(value),
        printable(value).replace("'", "\\'"),
    }
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


@cache
def secret_names() -> frozenset[str]:
    """Return the names of secret fields of all schemas."""
    nodes = (item for name in schema_names() for item in _fields(known_schema(name)))
    secret = {name for name, node in nodes if node.get("x-secret") or node.get("x-holds-secrets")}
    return frozenset(secret) | frozenset(_COMMON_NAMES)


def _plain_names() -> frozenset[str]:
    """Return the names of fields of all schemas that are not secret."""
    names = {name for schema in schema_names() for name, _ in _fields(known_schema(schema))}
    return frozenset(names) - secret_names()


def _fields(node: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names and schemas of the fields of a schema, at any depth."""
    if isinstance(node, dict):
        for name, below in node.get("properties", {}).items():
            yield name, below
            yield from _fields(below)
        yield from _fields(node.get("additionalProperties"))


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=lambda name: (-len(name), name)))


@cache
def _names() -> str:
    """Return a pattern for the names of secret fields, and similar names."""
    known, plain = _any_of(secret_names()), _any_of(_plain_names())
    return rf"(?:{known})(?![\w.-])|(?!(?:{plain})(?![\w.-])){_NAME_IN_FILES}"


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<key>(?<![\w-])[\"']?(?:{_names()})[\"']?\s*:\s+)"
        # A reference is not a secret, except for a default.
        r"(?![\"']?\$\{(?:(?!:-)[^}])*\}[\"']?\s*(?:[,}#]|$))"
        r"(?P<value>\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|(?:\$\{[^}]*\}|[^,}\n])+)"
    )


@cache
def plain_key() -> re.Pattern[str]:
    """Return the pattern of a line that starts with the key of a field that is not secret."""
    return re.compile(rf"\s*(?:-\s+)?[\"']?(?:{_any_of(_plain_names())})[\"']?\s*:")


@cache
def secret_key() -> re.Pattern[str]:
    """Return the pattern of a line that starts with the key of a secret."""
    return re.compile(rf"\s*(?:-\s+)?[\"']?(?:{_names()})[\"']?\s*:")
