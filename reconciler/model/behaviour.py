"""What a kind does besides its fields: rules, operations, and copies of its objects."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.model.change import Consequence
from reconciler.model.copied import Copied
from reconciler.model.operation import Operation
from reconciler.model.rule import KnownRefusal, Rule
from reconciler.model.values import JSONObject


def _no_warnings(_: JSONObject) -> tuple[Consequence, ...]:
    return ()


class Behaviour(Struct, frozen=True):
    """What planning and operations need of a kind, and loading files does not.

    backfill_warnings
        Return the consequences of backfilling an object, by its live body.
    copied
        Return an object of a copy of the service, by its live body and what a plan sends to it.
    """

    operations: tuple[Operation, ...] = ()
    rules: tuple[Rule, ...] = ()
    refusals: tuple[KnownRefusal, ...] = ()
    backfill_warnings: Callable[[JSONObject], tuple[Consequence, ...]] = _no_warnings
    copied: Callable[[JSONObject, JSONObject], Copied] = Copied.plain
