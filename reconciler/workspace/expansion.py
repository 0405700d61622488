"""Bound what references expand to: variables that repeat others grow exponentially."""

from __future__ import annotations

from msgspec import Struct, field

from reconciler.model.values import JSON, SecretRef
from reconciler.workspace.limits import MAX_DEPTH, MAX_EXPANDED, MAX_TOTAL_EXPANDED

_CHARACTERS = 100
"""Characters of a text that count as one value."""
MAX_TEXT = MAX_EXPANDED * _CHARACTERS
TOO_MANY = f"references expand to more than {MAX_TOTAL_EXPANDED:,} values in total"
TOO_DEEP = f"variables refer to each other more than {MAX_DEPTH} levels deep"


class Expansion(Struct):
    """What the references of an environment expand to, counted where it is used.

    Lists and mappings are shared, not copied: they are small in memory and huge for all that walks
    through them. Their sizes are remembered, so counting does not walk through them either.
    """

    total: int = 0
    _sizes: dict[int, tuple[JSON, int, int]] = field(default_factory=dict)

    def refused(self, value: JSON) -> str | None:
        """Count a value, and return why it is refused, None if it is not.

        It is `TOO_MANY` if all references together expand to too many values.
        """
        size, depth = (1, 0) if value.__class__ is SecretRef else self._measured(value)
        self.total += min(MAX_EXPANDED, size)
        if self.total > MAX_TOTAL_EXPANDED:
            return TOO_MANY
        if size > MAX_EXPANDED:
            return f"reference expands to more than {MAX_EXPANDED:,} values"
        return TOO_DEEP if depth > MAX_DEPTH else None

    def _measured(self, value: JSON) -> tuple[int, int]:
        """Return the number of values and the levels of a value."""
        if isinstance(value, str):
            return 1 + len(value) // _CHARACTERS, 0
        if not isinstance(value, (dict, list)):
            return 1, 0
        known = self._sizes.get(id(value))
        if known is None:
            items = value.values() if isinstance(value, dict) else value
            below = [self._measured(item) for item in items]
            size = 1 + sum(size for size, _ in below)
            depth = 1 + max((depth for _, depth in below), default=0)
            # The value is kept too: another one could have its id otherwise.
            known = self._sizes[id(value)] = (value, size, depth)
        return known[1:]
