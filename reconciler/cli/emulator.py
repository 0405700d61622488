"""`reconciler emulator`: the one door to the embedded service."""

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
