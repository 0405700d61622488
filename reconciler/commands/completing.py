"""Values for shell completion. What reads the files is imported when a shell asks."""

from __future__ import annotations

from collections.abc import Callable

import click

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _later(function: str) -> Complete:
    """Return the completion by a function of `completions`."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from reconciler.commands import completions

        values: list[str] = getattr(completions, function)(ctx, param, incomplete)
        return values

    return complete


environments = _later("environments")
resources = _later("resources")
parents = _later("parents")
kinds = _later("kinds")
