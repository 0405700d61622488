"""Field types: each returns the canonical form of a value, so that equal values compare equal.

`canonical` is idempotent, returns plain JSON, and never raises: validation reports wrong types.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from pkgutil import get_data
from typing import Final, Protocol

import orjson
from msgspec import Struct

from reconciler.model.values import JSON, SecretRef

_TRUE_WORDS = frozenset({"true", "1", "yes", "y", "t", "on"})
_UTC = {"Etc/UTC": "UTC"}
_ZONE_FILES = ("zone.tab", "tzdata.zi")
_FALSE_WORDS = frozenset({"false", "0", "no", "n", "f", "off"})
EARLIEST: Final = datetime(1900, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2299, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The times of events: DateTime64 of ClickHouse. Exports before and after it have no data."""


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
