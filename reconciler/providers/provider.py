"""What a provider is, and what it sees: while files are loaded, and when a secret is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model.connection import SecretSettings
from reconciler.model.resolved import FieldOrigin
from reconciler.model.values import JSON, SecretSource


@dataclass(frozen=True, slots=True)
class Filling:
    """What a provider sees while the configuration is loaded.

    environ
        The environment variables.
    variables
        The variables of the workspace and the environment, as written.
    allow_exec
        Whether the policy permits secrets from commands.
    assume_env
        Whether environment variables that are not set count as set to unknown text.
    expanding
        The variables that are being expanded, outermost first.
    expand
        Return a variable with its own references filled in.
    read
        Return a file of the workspace, None where it can't be read.
    is_outside
        Return whether a path leads out of the workspace.
    unknown_text
        Return text whose content is not known here.
    report
        Record an error at the reference, by code, message and hint.
    failed
        The value that stands for "unknown" after an error.
    """

    environ: Mapping[str, str]
    variables: Mapping[str, JSON]
    allow_exec: bool
    assume_env: bool
    expanding: Sequence[str]
    expand: Callable[[str], JSON]
    read: Callable[[str], bytes | None]
    is_outside: Callable[[str], bool]
    unknown_text: Callable[[str], JSON]
    report: Callable[[str, str, str], None]
    failed: JSON

    def refuse(self, code: str, message: str, hint: str) -> JSON:
        """Report an error at the reference. Returns the value that stands for "unknown"."""
        self.report(code, message, hint)
        return self.failed


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a provider sees when a secret is needed."""

    settings: SecretSettings
    environ: Mapping[str, str]


Fill: TypeAlias = Callable[[str, Filling], JSON]
Accepts: TypeAlias = Callable[[str, Filling], bool]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of values.

    argument
        The word for the argument in hints, for example PATH.
    fill
        Return the value of a plain reference. None: the provider serves secrets only.
    accepts
        Return whether a secret reference is valid, and report why not. None: the provider serves
        no references to secrets in files.
    look_up
        Return the value of a secret. Raises SecretUnavailable.
    effortless
        Whether looking up has no effect and takes no time, so that it is done before anything is
        printed, in order to mask the value.
    origin
        Return where the value of a plain reference comes from, for `show`.
    position
        The place in lists of providers; equal ones are sorted by name.
    """

    name: str
    argument: str = "NAME"
    fill: Fill | None = None
    accepts: Accepts | None = None
    look_up: Callable[[SecretSource, LookUp], str] | None = None
    effortless: bool = False
    origin: Callable[[str, Mapping[str, str]], FieldOrigin] | None = None
    position: int = 100

    def origin_of(self, argument: str, environ: Mapping[str, str]) -> FieldOrigin:
        """Return where a value comes from; the name of the provider where it doesn't say more."""
        if self.origin is None:
            return FieldOrigin(self.name, None)
        return self.origin(argument, environ)


def without_line_end(text: str) -> str:
    """Return text without one line end, which editors and commands add."""
    return text.removesuffix("\n").removesuffix("\r")
