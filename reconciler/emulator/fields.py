"""Checks of single values: a check takes a sent value and returns the value to store.

A check raises Refusal (400) with the field's name as `attr` for the first problem.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import cache, wraps
from typing import Any, TypeAlias, TypeVar
from zoneinfo import available_timezones

from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.refusal import invalid

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
