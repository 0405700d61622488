"""Plans of many exports in one project, and what a text has to show of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from reconciler.model.plan import Plan
from reconciler.model.resource import Resource
from reconciler.model.settings import Policy
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


def exports(
    count: int,
    new: Fields,
    live: Fields | None = None,
    base: Fields | None = None,
    *others: Resource,
    key: str = "x{}",
    policy: Policy | None = None,
) -> Plan:
    """Return the plan of exports x0, x1 and so on, and of others. Without `live` they are new."""
    keys = [key.format(number) for number in range(count)]

    def fields(given: Fields) -> list[Mapping[str, Any]]:
        return [given(number) if callable(given) else given for number in range(count)]

    def resources(given: Fields) -> list[Resource]:
        return [export(name, **own) for name, own in zip(keys, fields(given), strict=True)]

    there = [
        live_export(f"e{number}", keys[number].title(), **own)
        for number, own in enumerate(fields(live) if live is not None else ())
    ]
    return planned(
        desired_of(project(), *resources(new), *others),
        live_of(live_project(), *there),
        policy,
        base=desired_of(project(), *resources(base)) if base is not None else None,
    )


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
