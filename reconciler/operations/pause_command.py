"""`reconciler pause`."""

from __future__ import annotations

from typing import Any

from reconciler.cli.command import command
from reconciler.operations.toggling import pausing_options, toggled

EXAMPLES = (
    ("pause lake", "Pause an export"),
    ("pause 'shop-*' --write", "Pause several, and set `paused: true` in the files"),
    ("pause lake --reason 'new warehouse' --log-file audit.jsonl", "Record the reason"),
)


@command("pause", examples=EXAMPLES, page="docs/operations.md")
@pausing_options
def pause_command(names: tuple[str, ...], **options: Any) -> int:
    """Pause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. Paused exports skip their runs. --write sets the field in the files for this
    environment, so that the next apply keeps it.
    """
    from reconciler.model.action import Action

    _, _, code = toggled(Action.PAUSE, names, options)
    return code
