"""Schemas of kinds and parts, and the types of their fields.

`canonical` of a type returns one form of equal values. It is idempotent, returns plain JSON, and
never raises: validation reports wrong types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from pkgutil import get_data
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

from reconciler.model.values import JSON, Path, SecretRef
from reconciler.packaged import packaged

_TRUE_WORDS = frozenset({"true", "1", "yes", "y", "t", "on"})
_UTC = {"Etc/UTC": "UTC"}
_ZONE_FILES = ("zone.tab", "tzdata.zi")
_FALSE_WORDS = frozenset({"false", "0", "no", "n", "f", "off"})
EARLIEST: Final = datetime(1900, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2299, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The times of events: DateTime64 of ClickHouse. Exports before and after it have no data."""
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
_PARAMETER = (
    r"(?:[\w.-]{,40}(?:token|secret|passw(?:or)?d|passphrase|signature|credentials?"
    r"|(?:api|access|account|client|private|secret|shared|subscription)[_-]?key)"
    r"|(?:[\w.-]{,40}[_.-])?(?:sig|pwd|pass|jwt)|(?:key|code|auth)(?==[^\s&#]{16}))="
)
# A template such as {token}, and what is masked, is no credential.
_GIVEN = r"[^\s&#\"'<>(){}\[\],;$*|\\`]{6,}+(?![{<$])"
_CREDENTIAL = (
    r"(?i)[:?&;#](?:(?<=:)//(?:[^\s/@:]*:(?P<password>[^\s/@]+)(?=@)"
    r"|hooks\.slack\.com/(?:\w+/)+(?P<slack>\w[\w-]{5,})"
    r"|(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/(?P<discord>[\w-]{6,}))"
    rf"|(?<!:){_PARAMETER}(?P<parameter>{_GIVEN}))"
)
_MARKS = ("@", "=", "hooks")
"""Every address with a credential contains one of these."""
_VALUE = r"-----BEGIN [A-Z ]*PRIVATE KEY|\bph[xs]_[A-Za-z0-9_-]{8}"
"""A private key, or an API key of the service."""


class FieldType(Protocol):
    """The interface of field types."""

    def canonical(self, value: JSON) -> JSON:
        """Return the canonical form. None and secret references stay."""
        ...


class Text(Struct, frozen=True):
    """Text. The service trims whitespace around names (service.md 1.1, 4.1)."""

    trimmed: bool = False

    def canonical(self, value: JSON) -> JSON:
        """Return text, trimmed where the server trims."""
        if isinstance(value, str):
            return value.strip() if self.trimmed else value
        if isinstance(value, bool) or value is None or isinstance(value, SecretRef):
            return value
        return str(value) if isinstance(value, (int, float)) else value


class Integer(Struct, frozen=True):
    """A whole number; old servers answer it as text, "5432" (service.md 1.5)."""

    def canonical(self, value: JSON) -> JSON:
        """Return an int for text or a float with the value of one."""
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            try:
                number = int(value.strip())
            except ValueError:
                return value
            return number if _held_by_json(number) else value
        return _whole(value)


def _whole(value: JSON) -> JSON:
    """Return `1.0` as `1`, if JSON readers hold that number exactly."""
    if isinstance(value, float) and value.is_integer() and _held_by_json(int(value)):
        return int(value)
    return value


def _held_by_json(number: int) -> bool:
    """Return whether a whole number has 64 bits at most; longer ones change in transfer."""
    return -(2**63) <= number < 2**63


class IntegrationName(Struct, frozen=True):
    """An integration: its id, a number or digits, or its name, as text or `{name: TEXT}`."""

    def canonical(self, value: JSON) -> JSON:
        """Return an id as a number, and a name as text unless it consists of digits."""
        if isinstance(value, Mapping) and value.keys() == {"name"}:
            name = value["name"]
            is_text = isinstance(name, str) and not name.isdigit()
            return name if is_text else {"name": name}
        return Integer().canonical(value)


class Boolean(Struct, frozen=True):
    """True or false; old servers answer it as text, "True" (service.md 1.5)."""

    def canonical(self, value: JSON) -> JSON:
        """Return a bool for text that is a word for one."""
        if isinstance(value, str):
            word = value.strip().lower()
            if word in _TRUE_WORDS:
                return True
            if word in _FALSE_WORDS:
                return False
        return value


class Zone(Struct, frozen=True):
    """A time zone. Its former names, such as Asia/Calcutta, are the same zone."""

    def canonical(self, value: JSON) -> JSON:
        """Return the current name."""
        return _renamed_zones().get(value, value) if isinstance(value, str) else value


@cache
def _renamed_zones() -> Mapping[str, str]:
    """Return the current names of zones by their former ones, by the links of the tz database.

    A link that the table of zones by country has, such as Europe/Oslo, is a zone of its own: its
    rules are those of another one for the present.
    """
    table, links = (get_data("tzdata", f"zoneinfo/{name}") or b"" for name in _ZONE_FILES)
    own = {line.split("\t")[2] for line in table.decode().splitlines() if line[0] != "#"}
    words = (line.split() for line in links.decode().splitlines() if line.startswith("L "))
    current = {old: new for _, new, old in words if old not in own}
    return {old: "UTC" if new == "Etc/UTC" else new for old, new in current.items()} | _UTC


class DecimalText(Struct, frozen=True):
    """A number that the server returns as text with two places (service.md 4.2)."""

    def canonical(self, value: JSON) -> JSON:
        """Return `"0.40"` for `0.4`, `"0.4"` and `"0.40"`."""
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return value
        try:
            number = Decimal(str(value).strip())
            return str(number.quantize(Decimal("0.01")))
        except InvalidOperation:
            return value

    def as_number(self, value: JSON) -> JSON:
        """Return a value as a number, which is what files have."""
        text = self.canonical(value)
        try:
            return _whole(float(text)) if isinstance(text, str) else text
        except ValueError:
            return text


def instant_of(text: str) -> datetime:
    """Return the time of an ISO 8601 text in UTC, which is also its zone without an offset.

    A time before EARLIEST or after LATEST becomes that one, so that every caller can add to it and
    subtract from it: services return such times for "always" and "never". Raises ValueError.
    """
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    # Compared before it is converted: the conversion fails at the ends of the calendar.
    return max(EARLIEST, min(moment, LATEST)).astimezone(UTC)


class Instant(Struct, frozen=True):
    """A timestamp, compared by instant. Text without an offset is UTC (service.md 1.1)."""

    def canonical(self, value: JSON) -> JSON:
        """Return ISO 8601 in UTC with `Z`, microseconds only if not zero."""
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.strip())
            except ValueError:
                return value
        if isinstance(value, datetime):
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
            try:
                return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
            except OverflowError:
                return moment.isoformat()
        return value


def moment(value: JSON) -> datetime | None:
    """Return the time of an ISO 8601 text as `instant_of` does; None for another value."""
    try:
        return instant_of(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None


class ListOf(Struct, frozen=True):
    """A list whose order matters."""

    item: FieldType
    drop_blank: bool = False
    """Whether the server drops empty and null entries."""

    def canonical(self, value: JSON) -> JSON:
        """Return a list of canonical items."""
        if not isinstance(value, (list, tuple)):
            return value
        items = [self.item.canonical(item) for item in value]
        if self.drop_blank:
            items = [item for item in items if item not in (None, "")]
        return items


class SetOf(ListOf, frozen=True):
    """A list whose order has no meaning, such as event names to leave out."""

    def canonical(self, value: JSON) -> JSON:
        """Return the items without duplicates, sorted by their canonical JSON."""
        items = ListOf.canonical(self, value)
        if not isinstance(items, list):
            return items
        unique = {canonical_text(item): item for item in items}
        return [unique[text] for text in sorted(unique)]


class OpenObject(Struct, frozen=True):
    """Any JSON, replaced whole by the server."""

    numbers_as_text: bool = False
    """Whether leaves may come back as text."""

    def canonical(self, value: JSON) -> JSON:
        """Return the value with sorted keys, and `1.0` as `1`."""
        if isinstance(value, Mapping):
            return {str(key): self.canonical(value[key]) for key in sorted(value, key=str)}
        if isinstance(value, (list, tuple)):
            return [self.canonical(item) for item in value]
        value = _whole(value)
        if self.numbers_as_text and isinstance(value, (bool, int, float)):
            return str(value)
        return value


FROM_SCHEMA: Final[FieldType] = OpenObject()
"""The type of a field until its schema sets one (`kind.kind_of`)."""


class MergedObject(Struct, frozen=True):
    """An object that the server merges: a key that is left out stays as it is.

    Only declared keys are compared, down to `depth`; a key set to null equals an absent one.
    """

    depth: int = 1
    """How many levels are merged (service.md 4.2: modifiers 1, session_replay_config 2)."""
    by_client: bool = False
    """Whether the server replaces it whole but keeps a key of its own in it (extra_settings), so
    that the keys that are live and not declared are sent along."""

    def canonical(self, value: JSON) -> JSON:
        """Return the value with sorted keys, and `1.0` as `1`."""
        return OpenObject().canonical(value)

    def part_of(self, live: JSON, desired: JSON) -> JSON:
        """Return the part of the live value with the declared keys, in canonical form."""
        return _declared_part(self.canonical(live), self.canonical(desired), levels=self.depth)

    def without_nulls(self, desired: JSON) -> JSON:
        """Return the declared value as the server returns it: without keys set to null."""
        return _without_nulls(self.canonical(desired), levels=self.depth)


def time_text(moment: datetime) -> str:
    """Return ISO 8601 in UTC, with microseconds only if there are some."""
    return str(Instant().canonical(moment))


def _declared_part(live: JSON, desired: JSON, *, levels: int) -> JSON:
    if not isinstance(live, dict) or not isinstance(desired, dict) or levels == 0:
        return live
    part = {}
    for key in desired:
        if live.get(key) is not None:
            part[key] = _declared_part(live[key], desired[key], levels=levels - 1)
    return part


def _without_nulls(value: JSON, *, levels: int) -> JSON:
    if not isinstance(value, dict) or levels == 0:
        return value
    return {
        key: _without_nulls(item, levels=levels - 1)
        for key, item in value.items()
        if item is not None
    }


def _jsonable(value: JSON) -> JSON:
    if isinstance(value, SecretRef):
        return {"$secret": str(value)}
    raise TypeError(f"{type(value).__name__} is not JSON")


def canonical_text(value: JSON) -> str:
    """Return JSON with sorted keys and without whitespace: equal values give equal text."""
    return orjson.dumps(value, default=_jsonable, option=orjson.OPT_SORT_KEYS).decode()


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
    node: Mapping[str, Any], value: JSON, within: Path, path: Path = ()
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
    return bool(credential_spans(text)) or re.search(_VALUE, text) is not None


def may_hold_credential(text: str) -> bool:
    """Return whether an address with a credential may be in a text."""
    return any(mark in text for mark in _MARKS)


def credential_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of credentials in addresses: a password, a parameter, the key of a hook."""
    if not may_hold_credential(text):
        return []
    return [match.span(str(match.lastgroup)) for match in re.finditer(_CREDENTIAL, text)]


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
