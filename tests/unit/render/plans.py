"""Plans of many exports in one project, and what a text has to show of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from reconciler.model.plan import Plan
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan_text import plan_as_text
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

Fields = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]
"""The fields of an export, or a function of its number."""


def exports(count: int, new: Fields, live: Fields | None = None, *, key: str = "x{}") -> Plan:
    """Return the plan of exports x0, x1 and so on. Without `live` they are new."""
    resources, there = [project()], [live_project()]
    for number in range(count):
        name = key.format(number)
        resources.append(export(name, **(new(number) if callable(new) else new)))
        if live is not None:
            fields = live(number) if callable(live) else live
            there.append(live_export(f"e{number}", name.title(), **fields))
    return planned(desired_of(*resources), live_of(*there))


def words_of(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def check(
    shown: Plan | str,
    *parts: str,
    times: Mapping[str, int] = MappingProxyType({}),
    options: RenderOptions = DEFAULTS,
    most: int = 99,
) -> None:
    """Check parts of a text, or of that of a plan, also across the ends of its lines.

    `times` has parts that are there exactly so often, `most` is a number of lines.
    """
    text = shown if isinstance(shown, str) else plan_as_text(shown, options)
    texts = (text, words_of(text))
    assert [part for part in parts if not any(part in form for form in texts)] == [], text
    assert {part: max(form.count(part) for form in texts) for part in times} == times, text
    assert len(text.splitlines()) <= most
