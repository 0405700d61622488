"""Decide which fields are secret by their names, and which values by their form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from reconciler.model.schema_files import known_schema, schema_names

_COMMON = frozenset({"api_key", "token", "password", "secret"})
# Not compiled here, since few commands need them.
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]+"
_LOOK = (
    r"secret|passw|passphrase|(?:^|_)pass$|pwd|token|credential|authorization|webhook|keyfile|dsn"
    r"|jaas|connection_?(?:string|url|uri)|service_?account|(?:access|private|api)_?key"
    r"|(?<!primary)(?<!partition)(?<!sort)(?<!version)(?<!cluster)(?<!public)(?<!message)"
    r"(?<!routing)(?<!ordering)(?<!foreign)(?<!group)(?<!row)_key$"
)
_ABOUT = (
    r"_(?:name|type|ttl|count|version|arn|enabled|policy|expiry|limit)$"
    r"|token_(?:url|uri|endpoint)$|max_tokens$"
)
"""Names of what describes a secret: a name in a vault, the address that issues tokens."""
_ADDRESS = (
    r"(?:^|_)(?:host(?:s|name)?|port|server(?:s|_hostname)?|brokers?|endpoints?|address(?:es)?|account"
    r"|function_id|ur[il]|dsn)(?:_ur[il])?$"
)
_VALUE = r"://[^\s/@:]*:[^\s/@]+@|-----BEGIN [A-Z ]*PRIVATE KEY|\bph[xs]_[A-Za-z0-9_-]{8}"
"""A password in a URL, a private key, or an API key of the service."""


@lru_cache(maxsize=4096)
def looks_secret(name: str) -> bool:
    """Return whether a field is secret: by its schema, or by its name if no schema has it."""
    plain = re.sub(_HUMP, "_", name).lower()
    is_secret_word = re.search(_LOOK, plain) is not None and re.search(_ABOUT, plain) is None
    if name.isupper():
        # An environment variable. No schema has it, and reading all of them takes 5 ms.
        return is_secret_word
    return name in secret_names() or (is_secret_word and name not in plain_names())


def looks_like_address(name: str) -> bool:
    """Return whether a field of a destination says where its credentials are sent."""
    return re.search(_ADDRESS, re.sub(_HUMP, "_", name).lower()) is not None


def holds_secret(text: str) -> bool:
    """Return whether a value contains what looks like a secret, in any field."""
    return re.search(_VALUE, text) is not None


@cache
def secret_names() -> frozenset[str]:
    """Return the names of secret fields of all schemas."""
    nodes = (item for name in schema_names() for item in _fields(known_schema(name)))
    secret = {name for name, node in nodes if node.get("x-secret") or node.get("x-holds-secrets")}
    return frozenset(secret) | _COMMON


@cache
def plain_names() -> frozenset[str]:
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
