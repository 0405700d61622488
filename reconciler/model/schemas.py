"""The JSON Schemas of the package, and which fields and values are secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import orjson

from reconciler.model.values import JSON, Path
from reconciler.packaged import packaged

_SUFFIX = ".schema.json"
_PARTS = "parts/"
_RESOURCE = "resource"
_KIND = b'"x-kind"'
_REFERENCES = (b'"x-parts"', b'"x-variants"')
"""The words that refer to other files. A schema without them is complete."""
_WORD = re.compile(r"[a-z]+")
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
# The host of an address without credentials. A final dot and upper case are no part of its name.
_HOST = r"(?i)^((?:[a-z][\w+.-]*://)?[^\s@:/?#]+?)\.?(?=[:/?#]|$)(?!.*@)"
_VALUE = r"://[^\s/@:]*:[^\s/@]+@|-----BEGIN [A-Z ]*PRIVATE KEY|\bph[xs]_[A-Za-z0-9_-]{8}"
"""A password in a URL, a private key, or an API key of the service."""


@cache
def schema(name: str) -> dict[str, Any] | None:
    """Return the schema of a name such as "workspace" or "destinations/S3", None if unknown.

    Names come from files of users (the type of a destination), so only known ones are opened.
    """
    if name not in schema_names():
        return None
    content = _bytes(name)
    node: dict[str, Any] = orjson.loads(content)
    return _composed(node) if any(word in content for word in _REFERENCES) else node


def known_schema(name: str) -> dict[str, Any]:
    """Return the schema of a name. Raises KeyError for an unknown one."""
    known = schema(name)
    if known is None:
        raise KeyError(f"unknown schema '{name}'")
    return known


def own_properties(name: str) -> Mapping[str, Any]:
    """Return the properties that a schema does not share with others."""
    shared = common_properties() if _RESOURCE in _read(name).get("x-parts", ()) else {}
    properties = known_schema(name)["properties"]
    return {key: node for key, node in properties.items() if key not in shared}


@cache
def common_properties() -> Mapping[str, Any]:
    """Return the properties that every kind of resource has."""
    properties: Mapping[str, Any] = _read(_PARTS + _RESOURCE)["properties"]
    return properties


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(_bytes(name))
    return content


def _bytes(name: str) -> bytes:
    return packaged("schemas").joinpath(f"{name}{_SUFFIX}").read_bytes()


def _composed(node: Any) -> Any:
    """Return a node with the parts that it refers to, at any depth."""
    if isinstance(node, list):
        return [_composed(item) for item in node]
    if not isinstance(node, dict):
        return node
    composed = {key: _composed(item) for key, item in node.items() if key != "x-parts"}
    for part in node.get("x-parts", ()):
        shared = _composed(_read(_PARTS + part))["properties"]
        composed["properties"] = _joined(composed.get("properties", {}), shared)
    if "x-variants" in composed:
        _list_variants(composed)
    return composed


def _list_variants(node: dict[str, Any]) -> None:
    """Add the tags with a schema in the folder to the known values."""
    words = node["x-variants"]
    prefix = f"{words['folder']}/"
    files = [name.removeprefix(prefix) for name in schema_names() if name.startswith(prefix)]
    tag = node["properties"][words["tag"]]
    listed = tag.get("x-open-enum", ())
    tag["x-open-enum"] = [*listed, *(name for name in files if name not in listed)]


def _joined(own: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return own and shared properties, a shared one with `x-before` before that property.

    The keywords of a property in both are merged; the own ones take precedence.
    """
    merged = {
        name: {word: value for word, value in node.items() if word != "x-before"}
        | own.get(name, {})
        for name, node in shared.items()
    }
    before = {name: node["x-before"] for name, node in shared.items() if "x-before" in node}
    joined: dict[str, Any] = {}
    for name, node in own.items():
        joined |= {key: merged[key] for key, place in before.items() if place == name}
        if name not in merged:
            joined[name] = node
    return {**joined, **{name: node for name, node in merged.items() if name not in joined}}


def variant_schema(variants: Mapping[str, str], tag: Any) -> dict[str, Any]:
    """Return the schema of the body that a tag chooses by `x-variants`; {} if there is none."""
    return schema(f"{variants['folder']}/{tag}") or {}


def member_schema(node: Mapping[str, Any], value: JSON, name: str | int) -> dict[str, Any] | None:
    """Return the schema of a part of a value, an item or a body that its tag chooses included."""
    if isinstance(value, list):
        return node.get("items")
    variants = node.get("x-variants")
    if variants is not None and name == variants["body"]:
        return variant_schema(variants, value.get(variants["tag"]))
    below: dict[str, Any] | None = node.get("properties", {}).get(name)
    return below


def listed_values(
    node: Mapping[str, Any], value: JSON, within: Path = (), path: Path = ()
) -> Iterator[tuple[Path, JSON, Sequence[str]]]:
    """Yield the values within a part whose schema lists the known ones, with paths and those."""
    if "x-open-enum" in node:
        yield path, value, node["x-open-enum"]
    elif isinstance(value, (dict, Mapping, list)):
        for name, item in enumerate(value) if isinstance(value, list) else value.items():
            if not within or name == within[0]:
                below = member_schema(node, value, name) or {}
                yield from listed_values(below, item, within[1:], (*path, name))


def types_of(node: Mapping[str, Any]) -> Sequence[str]:
    """Return the types that a schema accepts."""
    types = node.get("type", ())
    return (types,) if isinstance(types, str) else types


@cache
def schema_names() -> tuple[str, ...]:
    """Return all names, sorted, without parts."""
    folder = packaged("schemas")
    files = folder.rglob(f"*{_SUFFIX}")
    names = (file.relative_to(folder).as_posix().removesuffix(_SUFFIX) for file in files)
    return tuple(name for name in sorted(names) if not name.startswith(_PARTS))


@cache
def kind_names() -> tuple[str, ...]:
    """Return the names of the schemas of kinds, sorted."""
    candidates = (name for name in schema_names() if "/" not in name and _KIND in _bytes(name))
    return tuple(name for name in candidates if "x-kind" in known_schema(name))


@cache
def schema_words() -> frozenset[str]:
    """Return the words of all schemas, in lower case: names of fields, values and descriptions."""
    texts = (orjson.dumps(schema(name)).decode().lower() for name in schema_names())
    return frozenset(word for text in texts for word in _WORD.findall(text))


@lru_cache(maxsize=4096)
def looks_secret(name: str) -> bool:
    """Return whether a field is secret: by its schema, or by its name if no schema has it."""
    plain = re.sub(_HUMP, "_", name).lower()
    is_secret_word = re.search(_LOOK, plain) is not None and re.search(_ABOUT, plain) is None
    if name.isupper():
        # An environment variable. No schema has it, and reading all of them takes 5 ms.
        return is_secret_word
    return name in secret_names() or (is_secret_word and name not in plain_names())


@lru_cache(maxsize=4096)
def looks_like_address(name: str) -> bool:
    """Return whether a field of a destination says where its credentials are sent."""
    return re.search(_ADDRESS, re.sub(_HUMP, "_", name).lower()) is not None


def canonical_host(address: str) -> str:
    """Return an address with its host in lower case and without a final dot: both are one host."""
    return re.sub(_HOST, lambda match: match[1].lower(), address, count=1)


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
