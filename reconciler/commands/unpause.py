"""`reconciler unpause`: what `pause` does, the other way round."""

from __future__ import annotations

from typing import Any

from reconciler.commands.command import command
from reconciler.commands.pause.command import pausing_options, toggled


@command(
    "unpause",
    examples=(
        ("unpause lake", "Unpause an export; its skipped runs are not made up for"),
        ("unpause --destination snowflake", "Unpause every export to Snowflake"),
    ),
    page="docs/operations.md",
)
@pausing_options
def unpause_command(names: tuple[str, ...], **options: Any) -> int:
    """Unpause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. NAME, --project and --destination together select exports that all of them match. It
    prints the command that exports what the pause skipped: `backfill --since-pause`.
    """
    from reconciler.model.kind import Action

    return toggled(Action.UNPAUSE, names, options)
