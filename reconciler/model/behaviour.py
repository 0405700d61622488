"""What a kind does besides its fields: rules and operations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct, field

from reconciler.model.change import Consequence
from reconciler.model.operation import Operation
from reconciler.model.rule import KnownRefusal, Rule
from reconciler.model.values import JSONObject, Path


def _is_unending(*_: object) -> bool:
    return False


def _no_warnings(_: JSONObject) -> tuple[Consequence, ...]:
    return ()


class Overlap(Struct, frozen=True):
    """When two objects at one place do the same work.

    source
        Paths of the fields that are equal in any case.
    selection
        Paths of the fields that are equal, too, unless one object was the other before.
    has_ended
        Return whether the object of a live body does nothing any more at an instant.
    """

    source: tuple[Path, ...] = ()
    selection: tuple[Path, ...] = ()
    has_ended: Callable[[JSONObject, datetime], bool] = _is_unending


class Behaviour(Struct, frozen=True):
    """What planning and operations need of a kind, and loading files does not.

    backfill_warnings
        Return the consequences of backfilling an object, by its live body.
    overlap
        When an object would double the work of another one.
    """

    operations: tuple[Operation, ...] = ()
    rules: tuple[Rule, ...] = ()
    refusals: tuple[KnownRefusal, ...] = ()
    backfill_warnings: Callable[[JSONObject], tuple[Consequence, ...]] = _no_warnings
    overlap: Overlap = field(default_factory=Overlap)
