"""Checks of single values: a check takes a sent value and returns the value to store.

A check raises Refusal (400) with the field's name as `attr` for the first problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache, wraps
from typing import Any, TypeAlias, TypeVar
from zoneinfo import available_timezones

from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.refusal import invalid, server_error

Check: TypeAlias = Callable[[str, Any], Any]
_T = TypeVar("_T")

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def _not_null(check: Callable[[str, Any], _T]) -> Callable[[str, Any], _T]:
    @wraps(check)
    def checked(attr: str, value: Any) -> _T:
        if value is None:
            raise invalid(attr, "This field may not be null.", "null")
        return check(attr, value)

    return checked


def nullable(check: Check) -> Check:
    """Return a check that accepts null and leaves other values to `check`."""

    def checked(attr: str, value: Any) -> Any:
        return None if value is None else check(attr, value)

    return checked


def text(*, longest: int | None = None, blank: bool = False) -> Check:
    """Return a check of text, which is stored trimmed. `longest` is in characters."""

    @_not_null
    def checked(attr: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise invalid(attr, "Not a valid string.")
        trimmed = str(value).strip()
        if "\0" in trimmed:
            code, detail = "null_characters_not_allowed", "Null characters are not allowed."
            raise invalid(attr, detail, code)
        if not trimmed and not blank:
            raise invalid(attr, "This field may not be blank.", "blank")
        if longest is not None and len(trimmed) > longest:
            raise invalid(
                attr, f"Ensure this field has no more than {longest} characters.", "max_length"
            )
        return trimmed

    return checked


def choice(*values: str) -> Check:
    """Return a check for one of these values."""

    @_not_null
    def checked(attr: str, value: Any) -> str:
        if value not in values:
            raise invalid(attr, f'"{value}" is not a valid choice.', "invalid_choice")
        return str(value)

    return checked


@_not_null
def boolean(attr: str, value: Any) -> bool:
    """Return True or False for a boolean or a word for one. Raise Refusal."""
    word = str(value).strip().lower() if isinstance(value, (str, bool, int)) else ""
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise invalid(attr, "Must be a valid boolean.")


def integer(*, least: int = -(2**31), most: int = 2**31 - 1) -> Check:
    """Return a check of a whole number, also as text; of 32 bits unless bounded otherwise."""

    @_not_null
    def checked(attr: str, value: Any) -> int:
        number = _whole(value)
        if number is None:
            raise invalid(attr, "A valid integer is required.")
        if number > most:
            raise invalid(attr, f"Ensure this value is less than or equal to {most}.", "max_value")
        if number < least:
            raise invalid(
                attr, f"Ensure this value is greater than or equal to {least}.", "min_value"
            )
        return number

    return checked


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
        return int(number) if number == int(number) else None
    except (ValueError, OverflowError):
        return None


@_not_null
def moment(attr: str, value: Any) -> str:
    """Return an instant in UTC. Raise Refusal."""
    try:
        return iso(parsed(value.strip()))
    except (ValueError, AttributeError, OverflowError):
        raise invalid(
            attr,
            "Datetime has wrong format. Use one of these formats instead: "
            "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].",
        ) from None


@_not_null
def rate(attr: str, value: Any) -> str:
    """Return a decimal from 0 to 1 as text with two places. Raise Refusal."""
    number = _decimal(value)
    if number is None:
        raise invalid(attr, "A valid number is required.")
    if number > 1:
        raise invalid(attr, "Ensure this value is less than or equal to 1.", "max_value")
    if number < 0:
        raise invalid(attr, "Ensure this value is greater than or equal to 0.", "min_value")
    if number != round(number, 2):
        raise invalid(
            attr, "Ensure that there are no more than 2 decimal places.", "max_decimal_places"
        )
    return f"{number:.2f}"


def _decimal(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() and not isinstance(value, bool) else None


def texts(
    *, longest: int | None = None, blank: bool = True, dropped: tuple[Any, ...] = ()
) -> Check:
    """Return a check of a list of text; `dropped` are items to drop.

    Unless blank text is valid, neither is an empty list without items to drop.
    """
    item = text(longest=longest, blank=blank)

    @_not_null
    def checked(attr: str, value: Any) -> list[str]:
        if not isinstance(value, list):
            raise invalid(
                attr,
                f'Expected a list of items but got type "{type(value).__name__}".',
                "not_a_list",
            )
        if not (value or blank or dropped):
            raise invalid(attr, "This list may not be empty.", "empty")
        kept = [entry for entry in value if entry not in dropped]
        return [item(f"{attr}__{position}", entry) for position, entry in enumerate(kept)]

    return checked


@_not_null
def zone(attr: str, value: Any) -> str:
    """Return the name of a time zone. Raise Refusal."""
    if not isinstance(value, str) or value not in _zones():
        raise invalid(attr, f'"{value}" is not a valid choice.', "invalid_choice")
    return value


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


@_not_null
def anything(attr: str, value: Any) -> Any:
    """Return any JSON but null. Raise Refusal."""
    del attr
    return value


# Single settings of projects (service.md, 4.2)

_LONGEST_ERRORS = 300
_LONGEST_ID = 20
_MODIFIERS = frozenset(
    {
        *("bounceRateDurationSeconds", "bounceRatePageViewMode", "convertToProjectTimezone"),
        *("customChannelTypeRules", "dataWarehouseEventsModifiers", "debug"),
        *("forceClickhouseDataSkippingIndexes", "formatCsvAllowDoubleQuotes", "inCohortVia"),
        *("inlineCohortCalculation", "materializationMode", "materializedColumnsOptimizationMode"),
        *("optimizeJoinedFilters", "optimizeProjections", "personsArgMaxVersion"),
        *("personsJoinMode", "personsOnEventsMode", "propertyGroupsMode"),
        *("s3TableUseInvalidColumns", "sessionTableVersion", "sessionsV2JoinMode", "timings"),
        *("useMaterializedViews", "usePreaggregatedIntermediateResults"),
        *("usePreaggregatedTableTransforms", "usePresortedEventsTable"),
        *("useWebAnalyticsPreAggregatedTables",),
    }
)
_MASKING = {
    "maskAllInputs": (bool, "boolean"),
    "maskTextSelector": (str, "string"),
    "blockSelector": (str, "string"),
}
_RETENTION_DAYS = (14, 30)
_REFERENCE = re.compile(r"\\(\\|([0-9])|)")
"""A doubled backslash, or a reference to a group. Rules are read by Python in place of re2."""


def mapping(attr: str, value: Any) -> dict[str, Any]:
    """Return an object."""
    if not isinstance(value, dict):
        raise invalid(attr, "Must provide a dictionary or None.")
    return value


def mapping_or_crash(attr: str, value: Any) -> dict[str, Any]:
    """Return an object. Raise Refusal (500): the server does not check it before it merges it."""
    del attr
    if not isinstance(value, dict):
        raise server_error()
    return value


def only_keys(*names: str, detail: str) -> Check:
    """Return a check for an object with no other keys."""

    def checked(attr: str, value: Any) -> dict[str, Any]:
        settings = mapping(attr, value)
        _refuse_unknown(attr, settings, names, detail)
        return settings

    return checked


def _refuse_unknown(
    attr: str, settings: Mapping[str, Any], names: Collection[str], detail: str
) -> None:
    if set(settings) - set(names):
        raise invalid(attr, f"Must provide a dictionary with only {detail}.")


def linked_flag(attr: str, value: Any) -> dict[str, Any]:
    """Return exactly {id, key} or {id, key, variant}."""
    flag = mapping(attr, value)
    if not {"id", "key"} <= set(flag) <= {"id", "key", "variant"}:
        raise invalid(
            attr,
            "Must provide a dictionary with only 'id' and 'key' keys. "
            "_or_ only 'id', 'key', and 'variant' keys.",
        )
    return flag


def numbered_flag(attr: str, value: Any) -> dict[str, Any]:
    """Return a flag as above, its id as a number: the newest server stores "123" as 123."""
    flag = linked_flag(attr, value)
    try:
        # The id is no boolean, no list, and no number like 1.5.
        return {**flag, "id": int(flag["id"] if isinstance(flag["id"], str) else repr(flag["id"]))}
    except ValueError:
        raise invalid(attr, "Must provide an integer 'id'.") from None


def property_filters(attr: str, value: Any) -> Any:
    """Return a list of property filters. Those of cohorts have operators of their own."""
    detail = "Must provide an array of valid property filters."
    if not isinstance(anything(attr, value), list):
        raise invalid(attr, detail)
    for entry in value:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(name), str) for name in ("key", "type")
        ):
            raise invalid(attr, detail)
        if entry["type"] == "cohort" and entry.get("operator", "in") not in ("in", "not_in"):
            raise invalid(attr, detail)
    return value


def cleaning_rules(attr: str, value: Any) -> Any:
    """Return rules with a regular expression, of which an alias references groups that exist."""
    if not value:
        return value
    if not isinstance(value, list):
        raise invalid(attr, "Must provide a list of path cleaning rules.")
    for rule in value:
        if isinstance(rule, dict):
            _check_rule(attr, rule.get("regex"), rule.get("alias"))
    return value


def _check_rule(attr: str, regex: Any, alias: Any) -> None:
    if not isinstance(regex, str) or not regex:
        raise invalid(attr, "A path cleaning rule needs a regex. Remove the rule or give it one.")
    try:
        groups = re.compile(regex).groups
    except re.error as error:
        raise invalid(attr, f"Invalid path cleaning regex '{regex}': {error}") from None
    for _, group in _REFERENCE.findall(alias if isinstance(alias, str) else ""):
        if group and int(group) > groups:
            raise invalid(
                attr,
                f"The alias '{alias}' references capture group \\{group}, but its regex has "
                f"{groups} capture group(s). Add the group to the regex or fix the reference.",
            )


def week_start_day(attr: str, value: Any) -> int:
    """Return 0 or 1, also from text. The service has it as a choice, not as a number."""
    days = {"0": 0, "1": 1}
    if str(value) not in days:
        raise invalid(attr, f'"{value}" is not a valid choice.', "invalid_choice")
    return days[str(value)]


def errors_to_ignore(attr: str, value: Any) -> list[str]:
    """Return a list of text whose JSON, with non-ASCII escaped, has at most 300 characters.

    Errors have no `attr`, and null is one although it is the initial value.
    """
    if not isinstance(value, list):
        raise invalid(None, f"Must provide a list for field: {attr}.")
    if not all(isinstance(item, str) for item in value):
        raise invalid(None, f"Must provide a list of strings for field: {attr}.")
    if len(json.dumps(value)) > _LONGEST_ERRORS:
        raise invalid(None, f"Field {attr} must be less than 300 characters.")
    return value


def dashboard(dashboards: Collection[int]) -> Check:
    """Return a check for the id of one of these dashboards."""

    def checked(attr: str, value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not (text.isascii() and text.removeprefix("-").isdigit()):
            kind = type(value).__name__
            detail = f"Incorrect type. Expected pk value, received {kind}."
            raise invalid(attr, detail, "incorrect_type")
        if len(text) > _LONGEST_ID or int(text) not in dashboards:
            raise invalid(attr, f'Invalid pk "{value}" - object does not exist.', "does_not_exist")
        return int(text)

    return checked


def modifiers(attr: str, value: Any) -> dict[str, Any]:
    """Return query modifiers with known names. Null removes a name."""
    settings = mapping(attr, value)
    seconds = settings.get("bounceRateDurationSeconds")
    if seconds is not None and not _between(seconds, 1, 120):
        raise invalid(f"{attr}__bounceRateDurationSeconds", "Must be between 1 and 120 seconds.")
    if set(settings) - _MODIFIERS:
        raise invalid(attr, "Invalid modifier key.")
    return settings


def masking(attr: str, value: Any) -> dict[str, Any]:
    """Return a masking configuration with known keys and their types."""
    settings = mapping(attr, value)
    _refuse_unknown(attr, settings, _MASKING, f"known keys: {', '.join(_MASKING)}")
    for name, item in settings.items():
        kind, word = _MASKING[name]
        if not isinstance(item, kind):
            raise invalid(attr, f"{name} must be a {word}.")
    return settings


def trigger_groups(attr: str, value: Any) -> dict[str, Any]:
    """Return trigger groups of version 2."""
    settings = mapping(attr, value)
    groups = settings.get("groups")
    if settings.get("version") != 2 or not isinstance(groups, list):
        raise invalid(attr, "Must be an object of version 2 with a list of groups.")
    if not _between(settings.get("fallbackSampleRate", 0), 0, 1):
        raise invalid(attr, "Invalid fallbackSampleRate. Must be a number between 0 and 1.")
    for index, group in enumerate(groups):
        wrong = _wrong_in_group(group)
        if wrong is not None:
            raise invalid(attr, f"Group {index}: {wrong}.")
    return settings


def _wrong_in_group(group: Any) -> str | None:
    """Return what is wrong with a trigger group. The filters inside conditions are not checked."""
    if not isinstance(group, dict):
        return "must be a dictionary"
    for name in ("id", "sampleRate", "conditions"):
        if name not in group:
            return f"missing required field '{name}'"
    shortest, conditions = group.get("minDurationMs", 0), group["conditions"]
    if not _between(group["sampleRate"], 0, 1):
        return "invalid sampleRate. Must be a number between 0 and 1"
    if not (isinstance(shortest, int) and _between(shortest, 0, 30_000)):
        return "'minDurationMs' must be an integer between 0 and 30000 (30 seconds)"
    if not isinstance(conditions, dict) or conditions.get("matchType", "any") not in ("any", "all"):
        return "'conditions' must be a dictionary with a matchType of 'any' or 'all'"
    return None


def logs_settings(attr: str, value: Any) -> dict[str, Any]:
    """Return settings of logs: retention_days is 14 or 30."""
    settings = mapping(attr, value)
    days = settings.get("retention_days")
    if days is not None and (isinstance(days, bool) or days not in _RETENTION_DAYS):
        raise invalid(attr, "retention_days must be 14 or 30.")
    return settings


def _between(value: Any, least: float, most: float) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and least <= value <= most
