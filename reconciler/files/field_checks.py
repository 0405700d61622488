"""Checks of values that a JSON Schema cannot express. `x-` words of the schemas select them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from pkgutil import get_data
from typing import Any, TypeAlias

from msgspec import Struct

from reconciler.files.validation import Carriers, CheckContext, annotated
from reconciler.files.yaml_document import Unknown
from reconciler.model.kind import IntegrationField, Kind
from reconciler.model.schemas import EARLIEST, LATEST, known_schema, moment, variant_schema
from reconciler.model.values import JSON, MISSING, JSONObject, Path, value_at

_ORDERED = "x-ordered"
_BODIES = "x-variants"
_SYSTEM_EVENTS = {
    name.replace("_", "").removeprefix("$"): name
    for name in (
        *("$autocapture", "$copy_autocapture", "$create_alias", "$dead_click", "$groupidentify"),
        *("$feature_flag_called", "$identify", "$opt_in", "$pageleave", "$pageview", "$rageclick"),
        *("$web_vitals", "$ai_generation", "$ai_span", "$ai_trace"),
    )
}
"""Events of PostHog by their plain names. Those that are words, such as `$screen`, are left out."""
_CONTROL = re.compile(r"[\x01-\x1f\x7f-\x9f]")
_Places: TypeAlias = Sequence[tuple[Path, Mapping[str, Any]]]
"""The paths of values with their schemas."""


class _ResourceContext(Struct, frozen=True):
    """A resource being checked."""

    kind: Kind
    spec: JSONObject
    check: CheckContext

    def known(self, places: _Places) -> Iterator[tuple[Path, JSON, Mapping[str, Any]]]:
        """Yield the known values at places, with path and schema."""
        for path, node in places:
            value = value_at(self.spec, path)
            if not isinstance(value, Unknown):
                yield path, value, node


def check_fields(
    kind: Kind, spec: JSONObject, check: CheckContext, carriers: Carriers | None = None
) -> None:
    """Report invalid values of one resource, and fields that contradict each other.

    `carriers` are the annotated fields, if they are known already.
    """
    context = _ResourceContext(kind, spec, check)
    carriers = annotated(kind.name, ANNOTATIONS, spec) if carriers is None else carriers
    for word, places in carriers.items():
        if word in _CHECKS:
            _CHECKS[word](context, places)


def _check_zones(context: _ResourceContext, places: _Places) -> None:
    for path, zone, _ in context.known(places):
        if isinstance(zone, str) and zone not in _zones():
            message = f"unknown time zone '{zone}' in {context.check.named(path)}"
            context.check.error("unknown-zone", path, message, _zone_hint(zone))


@cache
def _zones() -> frozenset[str]:
    """Return the zones of the package tzdata, which are in one file."""
    return frozenset((get_data("tzdata", "zones") or b"").decode().split())


# Cached, since the same mistake is often in many resources.
@lru_cache(maxsize=1_000)
def _zone_hint(zone: str) -> str:
    from difflib import get_close_matches

    # Names are long and similar: only a very close match is worth a suggestion.
    names = {name.lower(): name for name in _zones()}
    close = get_close_matches(zone.lower(), names, n=1, cutoff=0.85)
    suggestion = f"did you mean '{names[close[0]]}'?" if close else None
    return suggestion or "use a name such as Europe/Berlin or UTC"


def _check_rates(context: _ResourceContext, places: _Places) -> None:
    for path, value, _ in context.known(places):
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


def _check_timestamps(context: _ResourceContext, places: _Places) -> None:
    for path, value, node in context.known(places):
        if node["format"] != "date-time" or not isinstance(value, str):
            continue
        instant, named = moment(value), context.check.named(path)
        if instant is None:
            hint = "use ISO 8601, such as 2026-01-31T00:00:00Z"
            message = f"invalid timestamp '{value}' for {named}"
        elif instant in (EARLIEST, LATEST):
            hint = "remove it, or use a time in that range"
            message = f"{named} must be from {EARLIEST:%Y} to {LATEST:%Y}, not '{value}'"
        else:
            continue
        context.check.error("bad-timestamp", path, message, hint)


def _check_order(context: _ResourceContext, places: _Places) -> None:
    for first, second in (pair for _, node in places for pair in node[_ORDERED]):
        end = moment(context.spec.get(second))
        start = moment(context.spec.get(first)) if end is not None else None
        if start is not None and end is not None and end <= start:
            message = f"{context.check.named((second,))} must be after {first}"
            at, other = (context.check.value_mark((name,)) for name in (second, first))
            related = ((other, f"{first} is here"),)
            context.check.problems.error("wrong-order", message, at=at, related=related)


def _check_compressions(context: _ResourceContext, places: _Places) -> None:
    for path, node in places:
        body = value_at(context.spec, path)
        compression = body.get("compression") if isinstance(body, dict) else None
        file_format = body.get("file_format") if isinstance(body, dict) else None
        file_format = "JSONLines" if file_format is None else file_format
        if not isinstance(compression, str) or not isinstance(file_format, str):
            continue
        allowed = node["x-compressions"].get(file_format)
        if allowed is None or compression in allowed:
            continue
        if any(compression in names for names in node["x-compressions"].values()):
            at = (*path, "compression")
            message = f"{context.check.named(at)} cannot be {compression} for {file_format} files"
            hint = f"allowed for {file_format}: {', '.join(allowed)}"
            context.check.error("compression-mismatch", at, message, hint)


def _check_events(context: _ResourceContext, places: _Places) -> None:
    """Report names that are probably no events, and events in both lists of a body."""
    lists = [
        ((*path, word), value if isinstance(value, list) else [])
        for path, node in places
        for word in node["x-events"]
        for value in [value_at(context.spec, (*path, word))]
    ]
    for number, (path, names) in enumerate(lists):
        for position, name in enumerate(names):
            if not isinstance(name, str) or isinstance(name, Unknown):
                continue
            code, (problem, hint) = "event-name", _problem_of_event(name)
            if problem:
                message = f"'{name}' in {context.check.named(path)} {problem}"
            elif any(name in others for _, others in lists[:number]):
                code, hint = "no-effect", "remove it from one of the lists"
                message = f"event '{name}' is included and excluded: it is not exported"
            if hint:
                context.check.warning(code, (*path, position), message, hint)


# Cached, since most resources have the same events.
@lru_cache(maxsize=1_000)
def _problem_of_event(name: str) -> tuple[str, str]:
    """Return why a name is probably no event, and the hint, both empty for others."""
    right = _SYSTEM_EVENTS.get(re.sub(r"[\s_]+", "", name).casefold())
    if right is not None:
        return "is not the event of PostHog, whose name begins with $", f"write {right}"
    if re.search(r"\$\w+\s*[,;]\s*\$", name):
        return "is one name: it is not split at commas", "write each event as an item"
    return "", ""


def _check_whitespace(context: _ResourceContext, places: _Places) -> None:
    for path, _ in places:
        value = value_at(context.spec, path)
        if value.__class__ is str and not value.strip() and value:
            message = f"{context.check.named(path)} must not be only whitespace"
            context.check.error("out-of-range", path, message)
        elif value.__class__ is str and (control := _CONTROL.search(value.strip())):
            code = f"U+{ord(control[0]):04X}"
            message = f"{context.check.named(path)} contains the control character {code}"
            context.check.warning("control-character", path, message, "remove it")


def _check_integrations(context: _ResourceContext, places: _Places) -> None:
    """Report names of integrations in variants that take none: nothing could resolve them."""
    taken = {path for path, _ in context.kind.integration_fields(context.spec)}
    variants = {item.name: variant for item, variant in context.kind.variants}
    for path, value, _ in context.known(places):
        variant = variants[str(path[0])]
        tag = value_at(context.spec, (path[0], variant.tag))
        is_name = IntegrationField(path, "").name_in(value) is not None
        if is_name and path not in taken and tag in variant.variants:
            message = f"{context.check.named(path)} does not apply to {variant.tag} {tag}"
            context.check.error_at_key("does-not-apply", path, message, "remove it")


def _check_requirements(context: _ResourceContext, places: _Places) -> None:
    """Report fields that the service accepts only with certain values of other fields."""
    properties = known_schema(context.kind.name)["properties"]
    for path, node in places:
        if value_at(context.spec, path) is None:
            continue
        for other, allowed in node["x-only-with"].items():
            value = context.spec.get(other, properties[other].get("default", MISSING))
            if value in allowed or value not in properties[other].get("x-open-enum", ()):
                continue
            needed = f"{other} {' or '.join(allowed)}, not {value}"
            message = f"{context.check.named(path)} requires {needed}"
            hint = f"remove it, or change `{other}`"
            context.check.error_at_key("does-not-apply", path, message, hint)


def _check_bodies(context: _ResourceContext, places: _Places) -> None:
    """Report variants without a body whose type has required fields."""
    for path, node in places:
        variants, holder = node[_BODIES], value_at(context.spec, path)
        if not isinstance(holder, dict) or holder.get(variants["body"]) is not None:
            continue
        tag = holder.get(variants["tag"])
        required = variant_schema(variants, tag).get("required", ())
        if required:
            reason = f": {tag} requires {', '.join(required)}"
            context.check.missing(variants["body"], path, reason=reason)


_CHECKS: Mapping[str, Callable[[_ResourceContext, _Places], None]] = {
    "x-zone": _check_zones,
    "x-rate": _check_rates,
    "format": _check_timestamps,
    _ORDERED: _check_order,
    "x-compressions": _check_compressions,
    "x-events": _check_events,
    "x-not-blank": _check_whitespace,
    "x-only-with": _check_requirements,
    "x-integration": _check_integrations,
    _BODIES: _check_bodies,
}
"""The check of each annotation, of all values in a resource whose schema has it."""
ANNOTATIONS = frozenset(_CHECKS)
