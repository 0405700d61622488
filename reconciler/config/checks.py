"""Checks beyond structure that need no network. What they look at is marked in the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from zoneinfo import available_timezones

from reconciler.config.document import Unknown
from reconciler.config.schema import Checked, annotated
from reconciler.config.schema_files import schema
from reconciler.errors import Problems
from reconciler.model.kind import Kind
from reconciler.model.resource import Desired, Resource, State
from reconciler.model.values import MISSING, JSONObject, path_text, value_at

_OF_THE_MACHINE = frozenset({"localtime"})
"""Zones that mean something else on each machine."""


@dataclass(frozen=True, slots=True)
class _Check:
    kind: Kind
    spec: JSONObject
    checked: Checked
    problems: Problems


def check_fields(kind: Kind, spec: JSONObject, checked: Checked, problems: Problems) -> None:
    """One resource: zones, rates, moments in order, compression that fits the format."""
    look = _Check(kind, spec, checked, problems)
    _zones(look)
    _rates(look)
    _moments(look)
    _order(look)
    _compressions(look)


def _zones(look: _Check) -> None:
    for path, _ in annotated(look.kind.name, "x-zone", look.spec):
        zone = value_at(look.spec, path)
        if isinstance(zone, Unknown):
            continue
        if isinstance(zone, str) and zone not in available_timezones() - _OF_THE_MACHINE:
            look.problems.error(
                "unknown-zone",
                f"{path_text(path)} of {look.checked.subject}: there is no time zone '{zone}'",
                at=look.checked.value_mark(path),
                hint="write a name such as Europe/Berlin or UTC",
            )


def _rates(look: _Check) -> None:
    for path, _ in annotated(look.kind.name, "x-rate", look.spec):
        value = value_at(look.spec, path)
        if value is None or isinstance(value, Unknown):
            continue
        try:
            rate = Decimal(str(value))
        except InvalidOperation:
            rate = Decimal(-1)
        if not rate.is_finite() or not 0 <= rate <= 1 or rate != round(rate, 2):
            look.problems.error(
                "bad-rate",
                f"{path_text(path)} of {look.checked.subject} is {value}; it takes a number from "
                "0 to 1 with at most two decimals",
                at=look.checked.value_mark(path),
            )


def _moments(look: _Check) -> None:
    for path, node in annotated(look.kind.name, "format", look.spec):
        value = value_at(look.spec, path)
        if isinstance(value, Unknown) or not isinstance(value, str):
            continue
        if node["format"] == "date-time" and _moment(value) is None:
            look.problems.error(
                "bad-timestamp",
                f"{path_text(path)} of {look.checked.subject}: '{value}' is not a moment",
                at=look.checked.value_mark(path),
                hint="write it like 2026-01-31T00:00:00Z",
            )


def _order(look: _Check) -> None:
    pairs = (schema(look.kind.name) or {}).get("x-ordered", ())
    for first, second in pairs:
        start = _moment(look.spec.get(first))
        end = _moment(look.spec.get(second))
        if start is not None and end is not None and end <= start:
            look.problems.error(
                "wrong-order",
                f"{second} of {look.checked.subject} is not after {first}: nothing would ever run",
                at=look.checked.value_mark((second,)),
            )


def _compressions(look: _Check) -> None:
    for path, node in annotated(look.kind.name, "x-compressions", look.spec):
        file_format = value_at(look.spec, (*path, "file_format"))
        file_format = "JSONLines" if file_format in (MISSING, None) else file_format
        compression = value_at(look.spec, (*path, "compression"))
        known = node["x-compressions"].get(file_format)
        every = {each for found in node["x-compressions"].values() for each in found}
        if known is not None and compression in every and compression not in known:
            look.problems.error(
                "compression-mismatch",
                f"{path_text((*path, 'compression'))} of {look.checked.subject}: {file_format} "
                f"files can't be compressed with {compression}",
                at=look.checked.value_mark((*path, "compression")),
                hint=f"allowed for {file_format}: {', '.join(known)}",
            )


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def check_together(
    desired: Desired,
    kinds: Mapping[str, Kind],
    checked: Mapping[object, Checked],
    problems: Problems,
) -> None:
    """What only all resources together tell: names that clash, parents that are missing."""
    named: dict[tuple[str, object, str], Resource] = {}
    for resource in desired.in_order():
        look = checked[resource.address]
        kind = kinds[resource.address.kind]
        _check_parent(resource, kind, desired, look, problems)
        if resource.lifecycle.protect and resource.state is State.ABSENT:
            problems.error(
                "protected-and-absent",
                f"{resource.address} is protected and shall be absent",
                at=look.value_mark(("state",)),
                hint="remove one of the two",
            )
        place = (kind.name, resource.parent, resource.name)
        known = not isinstance(resource.spec.get("name"), Unknown)
        if known and resource.pinned_id is None and resource.state is State.PRESENT:
            other = named.setdefault(place, resource)
            if other is not resource:
                problems.error(
                    "same-name",
                    f"{resource.address} and {other.address} have the same name, "
                    f"'{resource.name}', in the same place",
                    at=look.value_mark(("name",)),
                    hint="give one another name, or pin both by `id`",
                    related=((checked[other.address].value_mark(("name",)), "the other one"),),
                )


def _check_parent(
    resource: Resource, kind: Kind, desired: Desired, look: Checked, problems: Problems
) -> None:
    ref = resource.parent
    if (
        ref is None
        or ref.key is None
        or isinstance(ref.key, Unknown)
        or kind.parent is None
        or kind.parent_key is None
    ):
        return
    keys = sorted(each.key for each in desired.resources if each.kind == kind.parent)
    at = look.value_mark((kind.parent_key,))
    if ref.key not in keys:
        close = get_close_matches(ref.key, keys, n=1)
        known = f"declared here: {', '.join(keys) or 'none'}"
        problems.error(
            "unknown-parent",
            f"{resource.address} belongs to {kind.parent} '{ref.key}', which is not declared in "
            "this environment",
            at=at,
            hint=(f"did you mean '{close[0]}'?" if close else known)
            + "; for one that is not declared write {id: …} or {name: …}",
        )
