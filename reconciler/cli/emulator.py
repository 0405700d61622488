"""`reconciler emulator`: the only module that imports the embedded service."""

from __future__ import annotations

from reconciler.errors import ReconcilerError

try:
    from reconciler.emulator.server import command
except ModuleNotFoundError as missing:
    raise ReconcilerError(
        f"the embedded service needs the package {missing.name}",
        hint="install it with: pip install 'reconciler[emulator]'",
    ) from None

__all__ = ["command"]
