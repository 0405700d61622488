"""Durations and counts as text."""

from __future__ import annotations

from math import ceil


def duration_as_text(seconds: float) -> str:
    """Return `41 s`, `1 min 20 s` or `2 h 5 min`, rounded up."""
    whole = max(0, ceil(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return _two(whole, 60, "min", "s")
    return _two(ceil(whole / 60), 60, "h", "min")


def _two(whole: int, size: int, large: str, small: str) -> str:
    first, second = divmod(whole, size)
    return f"{first} {large} {second} {small}" if second else f"{first} {large}"


def estimate_as_text(
    calls: int, seconds: float, *, limit: object = None, beyond_hour: bool = False
) -> str:
    """Return `606 calls, about 1 min 20 s at 480 a minute`.

    `limit` is the limit that slows the calls down, if any. `beyond_hour`: they are more than may be
    sent in an hour.
    """
    text = f"{calls:,} call{'' if calls == 1 else 's'}, about {duration_as_text(seconds)}"
    text += f" at {limit}" if limit is not None else ""
    return f"{text}; more than the hourly limit allows at once" if beyond_hour else text


def short_count(count: int) -> str:
    """Return a number with at most four digits: 950, 1.2 k, 28 M."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return str(count)
