"""`reconciler emulator`: the only module that imports the embedded service."""

from __future__ import annotations

from reconciler.commands.command import Command
from reconciler.errors import ReconcilerError

try:
    from reconciler.emulator.server import command
except ModuleNotFoundError as missing:
    raise ReconcilerError(
        f"the embedded service needs the package {missing.name}",
        hint="install it with: pip install 'posthog-reconciler[emulator]'",
    ) from None

EXAMPLES = (
    ("emulator --port 8010", "Serve an empty organization until Ctrl-C"),
    ("emulator --port 8010 --db service.db --dialect 2026", "Keep its state in a file"),
)

emulator_command = Command(
    "emulator",
    params=command.params,
    callback=command.callback,
    help=command.help,
    examples=EXAMPLES,
    page="docs/inside/emulator.md",
)
