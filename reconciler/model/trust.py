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
    branch
        The full name of the trusted branch that the values come from, None for the loaded files
        or if there is none.
    """

    env: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    secret_files: tuple[str, ...] = ()
    allow_exec: bool = False
    strict: bool = False
    branch: str | None = None
