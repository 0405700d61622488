"""Checks beyond structure that need no network. What they look at is marked in the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from reconciler.errors import DiagnosticCollector
from reconciler.model.kind import Kind
from reconciler.model.schema_files import schema, variant_schema
from reconciler.model.values import JSON, MISSING, JSONObject, Path, path_text, value_at
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.schema.validation import Checked
from reconciler.workspace.yaml.document import Unknown

_OF_THE_MACHINE = frozenset({"localtime"})
"""Zones that mean something else on each machine."""


@dataclass(frozen=True, slots=True)
class _Check:
    kind: Kind
    spec: JSONObject
    checked: Checked
    problems: DiagnosticCollector

    def marked(self, annotation: str) -> Iterator[tuple[Path, JSON, Mapping[str, Any]]]:
        """Yield the known values whose schema has an annotation, with path and schema."""
        for path, node in annotated(self.kind.name, annotation, self.spec):
            value = value_at(self.spec, path)
            if not isinstance(value, Unknown):
                yield path, value, node

    def refuse(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        """Report an error at a value."""
        self.problems.error(
            code,
            f"{path_text(path)} of {self.checked.subject}{message}",
            at=self.checked.value_mark(path),
            hint=hint,
        )


def check_fields(
    kind: Kind, spec: JSONObject, checked: Checked, problems: DiagnosticCollector
) -> None:
    """One resource: zones, rates, moments in order, and fields that go with others."""
    look = _Check(kind, spec, checked, problems)
    _zones(look)
    _rates(look)
    _moments(look)
    _order(look)
    _compressions(look)
    _blanks(look)
    _company(look)
    _bodies(look)


def _zones(look: _Check) -> None:
    for path, zone, _ in look.marked("x-zone"):
        if isinstance(zone, str) and zone not in _known_zones():
            look.refuse("unknown-zone", path, f": there is no time zone '{zone}'", _zone_hint(zone))


@cache
def _known_zones() -> frozenset[str]:
    """Kept, since the folders of the zone database are walked for it."""
    return frozenset(available_timezones()) - _OF_THE_MACHINE


def _zone_hint(zone: str) -> str:
    # Names are long and alike: only a very near one is worth a guess.
    names = {name.lower(): name for name in _known_zones()}
    close = get_close_matches(zone.lower(), names, n=1, cutoff=0.85)
    meant = f"did you mean '{names[close[0]]}'?" if close else None
    return meant or "write a name such as Europe/Berlin or UTC"


def _rates(look: _Check) -> None:
    for path, value, _ in look.marked("x-rate"):
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            continue
        try:
            rate = Decimal(str(value))
        except InvalidOperation:
            rate = Decimal(-1)
        if not rate.is_finite() or not 0 <= rate <= 1 or rate != round(rate, 2):
            message = f" is {value}; it takes a number from 0 to 1 with at most two decimals"
            look.refuse("bad-rate", path, message, "write it like 0.25")


def _moments(look: _Check) -> None:
    for path, value, node in look.marked("format"):
        is_moment = node["format"] == "date-time" and isinstance(value, str)
        if is_moment and _moment(value) is None:
            hint = "write it like 2026-01-31T00:00:00Z"
            look.refuse("bad-timestamp", path, f": '{value}' is not a moment", hint)


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
                related=((look.checked.value_mark((first,)), f"{first} is here"),),
            )


def _compressions(look: _Check) -> None:
    for path, _, node in look.marked("x-compressions"):
        file_format = value_at(look.spec, (*path, "file_format"))
        file_format = "JSONLines" if file_format in (MISSING, None) else file_format
        compression = value_at(look.spec, (*path, "compression"))
        if not isinstance(file_format, str) or not isinstance(compression, str):
            continue
        known = node["x-compressions"].get(file_format)
        every = {name for names in node["x-compressions"].values() for name in names}
        if known is not None and compression in every and compression not in known:
            look.refuse(
                "compression-mismatch",
                (*path, "compression"),
                f": {file_format} files can't be compressed with {compression}",
                f"allowed for {file_format}: {', '.join(known)}",
            )


def _blanks(look: _Check) -> None:
    for path, value, _ in look.marked("x-not-blank"):
        if value.__class__ is str and value and not value.strip():
            look.refuse("out-of-range", path, ": it is only whitespace")


def _company(look: _Check) -> None:
    """Fields that the service takes only beside certain values of others."""
    known = (schema(look.kind.name) or {}).get("properties", {})
    for path, node in annotated(look.kind.name, "x-only-with", look.spec):
        if value_at(look.spec, path) is None:
            continue
        for other, wanted in node["x-only-with"].items():
            value = look.spec.get(other, known[other].get("default", MISSING))
            if value in wanted or value not in known[other].get("x-open-enum", ()):
                continue
            look.problems.error(
                "does-not-apply",
                f"{path_text(path)} of {look.checked.subject} requires {other} "
                f"{' or '.join(wanted)} only, and it is {value}",
                at=look.checked.key_mark(path),
                hint=f"remove it, or change `{other}`",
            )


def _bodies(look: _Check) -> None:
    """A variant without its body lacks all that its type requires."""
    for path, node in annotated(look.kind.name, "x-variants", look.spec):
        variants, holder = node["x-variants"], value_at(look.spec, path)
        if not isinstance(holder, dict) or holder.get(variants["body"]) is not None:
            continue
        tag, body = holder.get(variants["tag"]), variants["body"]
        needed = variant_schema(variants, tag).get("required", ())
        if needed:
            look.problems.error(
                "missing-field",
                f"{path_text(path)} of {look.checked.subject} needs '{body}': {tag} has no default "
                f"for {', '.join(needed)}",
                at=look.checked.key_mark(path),
                hint=f"add `{body}:`",
            )


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
