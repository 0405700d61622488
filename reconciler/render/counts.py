"""Counts as text."""

from __future__ import annotations


def short_count(count: int) -> str:
    """Return a number with at most four digits: 950, 1.2 k, 28 M."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return str(count)
