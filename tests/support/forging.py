"""Forge saved plans: edit them at random and compute their digests again."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from reconciler.model.decoding import value_of
from reconciler.model.plan import Plan, encode


def forged(plan: Plan, chance: random.Random) -> Plan:
    """Return the plan of an edited file: changes removed, repeated, or with other values."""
    content = json.loads(encode(plan))
    changes = content["changes"]
    if changes and chance.random() < 0.3:
        changes.remove(chance.choice(changes))
    elif changes and chance.random() < 0.3:
        changes.append(copy.deepcopy(chance.choice(changes)))
    places = [place for place in _leaves(changes) if place[-1] not in ("digest", "destructive")]
    for _ in range(chance.randint(0, 2) if places else 0):
        # A place may be gone after an edit above it.
        with suppress(KeyError, IndexError, TypeError):
            other = _at(changes, chance.choice(places))
            *above, last = chance.choice(places)
            _at(changes, above)[last] = chance.choice([other, None, "x", 1, True])
    try:
        return value_of(Plan, content)
    except ValueError:
        return plan


def _at(value: Any, place: Any) -> Any:
    for part in place:
        value = value[part]
    return value


def _leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for part, item in items:
        if isinstance(item, (dict, list)) and item:
            yield from _leaves(item, (*place, part))
        else:
            yield (*place, part)
