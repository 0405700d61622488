"""What references may read, as the trusted files of a workspace declare it."""

from __future__ import annotations

from msgspec import Struct


class Trusted(Struct, frozen=True):
    """The declared names and folders, and whether commands may run.

    env, secrets
        The names of `env:` and `secrets:`.
    secret_files
        The folders of `secret_files:`, absolute or relative to the workspace.
    allow_exec
        Whether the policy allows `${secret:exec:…}`.
    strict
        Whether the files that are loaded do not decide themselves: a command without a terminal.
    reason
        Why what only the loaded files have does not count, if it does not.
    """

    env: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    secret_files: tuple[str, ...] = ()
    allow_exec: bool = False
    strict: bool = False
    reason: str = ""


def untrusted(setting: str, reason: str) -> str:
    """Return the message for a setting of the loaded files that does not count."""
    return f"{setting} cannot be trusted here: {reason}"
