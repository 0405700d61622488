"""Checks of values that a JSON Schema cannot express. `x-` words of the schemas select them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from reconciler.model.kind import Kind
from reconciler.model.schema_files import schema, variant_schema
from reconciler.model.values import JSON, MISSING, JSONObject, Path, value_at
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.schema.validation import CheckContext
from reconciler.workspace.yaml.document import Unknown

_MACHINE_ZONES = frozenset({"localtime"})
"""Zones whose meaning depends on the machine."""


@dataclass(frozen=True, slots=True)
class _ResourceContext:
    """A resource being checked."""

    kind: Kind
    spec: JSONObject
    check: CheckContext

    def marked(self, annotation: str) -> Iterator[tuple[Path, JSON, Mapping[str, Any]]]:
        """Yield the known values whose schema has an annotation, with path and schema."""
        for path, node in annotated(self.kind.name, annotation, self.spec):
            value = value_at(self.spec, path)
            if not isinstance(value, Unknown):
                yield path, value, node


def check_fields(kind: Kind, spec: JSONObject, check: CheckContext) -> None:
    """Report invalid values of one resource, and fields that contradict each other."""
    context = _ResourceContext(kind, spec, check)
    _check_zones(context)
    _check_rates(context)
    _check_timestamps(context)
    _check_order(context)
    _check_compressions(context)
    _check_whitespace(context)
    _check_requirements(context)
    _check_bodies(context)


def _check_zones(context: _ResourceContext) -> None:
    for path, zone, _ in context.marked("x-zone"):
        if isinstance(zone, str) and zone not in _known_zones():
            message = f"unknown time zone '{zone}' in {context.check.named(path)}"
            context.check.error("unknown-zone", path, message, _zone_hint(zone))


@cache
def _known_zones() -> frozenset[str]:
    # Cached, since listing the zones reads the folders of the zone database.
    return frozenset(available_timezones()) - _MACHINE_ZONES


def _zone_hint(zone: str) -> str:
    # Names are long and similar: only a very close match is worth a suggestion.
    names = {name.lower(): name for name in _known_zones()}
    close = get_close_matches(zone.lower(), names, n=1, cutoff=0.85)
    suggestion = f"did you mean '{names[close[0]]}'?" if close else None
    return suggestion or "use a name such as Europe/Berlin or UTC"


def _check_rates(context: _ResourceContext) -> None:
    for path, value, _ in context.marked("x-rate"):
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            continue
        try:
            rate = Decimal(str(value))
        except InvalidOperation:
            rate = Decimal(-1)
        if not rate.is_finite() or not 0 <= rate <= 1 or rate != round(rate, 2):
            named = context.check.named(path)
            message = f"{named} must be a number from 0 to 1 with at most two decimals, not {value}"
            context.check.error("bad-rate", path, message, "write it like 0.25")


def _check_timestamps(context: _ResourceContext) -> None:
    for path, value, node in context.marked("format"):
        is_timestamp = node["format"] == "date-time" and isinstance(value, str)
        if is_timestamp and _instant(value) is None:
            message = f"invalid timestamp '{value}' for {context.check.named(path)}"
            hint = "use ISO 8601, such as 2026-01-31T00:00:00Z"
            context.check.error("bad-timestamp", path, message, hint)


def _check_order(context: _ResourceContext) -> None:
    for first, second in (schema(context.kind.name) or {}).get("x-ordered", ()):
        start = _instant(context.spec.get(first))
        end = _instant(context.spec.get(second))
        if start is not None and end is not None and end <= start:
            context.check.problems.error(
                "wrong-order",
                f"{context.check.named((second,))} must be after {first}",
                at=context.check.value_mark((second,)),
                related=((context.check.value_mark((first,)), f"{first} is here"),),
            )


def _check_compressions(context: _ResourceContext) -> None:
    for path, _, node in context.marked("x-compressions"):
        file_format = value_at(context.spec, (*path, "file_format"))
        file_format = "JSONLines" if file_format in (MISSING, None) else file_format
        compression = value_at(context.spec, (*path, "compression"))
        if not isinstance(file_format, str) or not isinstance(compression, str):
            continue
        allowed = node["x-compressions"].get(file_format)
        known = {name for names in node["x-compressions"].values() for name in names}
        if allowed is not None and compression in known and compression not in allowed:
            at = (*path, "compression")
            message = f"{context.check.named(at)} cannot be {compression} for {file_format} files"
            hint = f"allowed for {file_format}: {', '.join(allowed)}"
            context.check.error("compression-mismatch", at, message, hint)


def _check_whitespace(context: _ResourceContext) -> None:
    for path, value, _ in context.marked("x-not-blank"):
        if value.__class__ is str and value and not value.strip():
            message = f"{context.check.named(path)} must not be only whitespace"
            context.check.error("out-of-range", path, message)


def _check_requirements(context: _ResourceContext) -> None:
    """Report fields that the service accepts only with certain values of other fields."""
    properties = (schema(context.kind.name) or {}).get("properties", {})
    for path, node in annotated(context.kind.name, "x-only-with", context.spec):
        if value_at(context.spec, path) is None:
            continue
        for other, allowed in node["x-only-with"].items():
            value = context.spec.get(other, properties[other].get("default", MISSING))
            if value in allowed or value not in properties[other].get("x-open-enum", ()):
                continue
            message = (
                f"{context.check.named(path)} requires {other} {' or '.join(allowed)}, not {value}"
            )
            hint = f"remove it, or change `{other}`"
            context.check.error_at_key("does-not-apply", path, message, hint)


def _check_bodies(context: _ResourceContext) -> None:
    """Report variants without a body whose type has required fields."""
    for path, node in annotated(context.kind.name, "x-variants", context.spec):
        variants, holder = node["x-variants"], value_at(context.spec, path)
        if not isinstance(holder, dict) or holder.get(variants["body"]) is not None:
            continue
        tag = holder.get(variants["tag"])
        required = variant_schema(variants, tag).get("required", ())
        if required:
            reason = f": {tag} requires {', '.join(required)}"
            context.check.missing(variants["body"], path, reason=reason)


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        instant = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
