"""The interface of reference providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.settings import Readable, SecretSettings
from reconciler.model.values import JSON, FieldOrigin, SecretSource


class FillRules(Struct, kw_only=True):
    """What references may read.

    read
        Return the content of a file of the workspace, None if it cannot be read.
    environ
        The environment variables.
    variables
        The variables of the workspace and the environment, as written.
    allow_exec
        Whether the policy allows secrets from commands.
    assume_env
        Whether unset environment variables have an unknown value, so that checks do not depend on
        the machine. Only those of a commit are read.
    declared
        What references may read by the files that are loaded.
    trusted
        What they may read here. On a terminal, both are the same.
    key_variables
        The environment variables with the API keys of the workspace.
    for_api_key
        Whether the value is the API key. The connection is trusted as a whole.
    expanding
        The variables that are being expanded, outermost first.
    of_commit
        Whether the files are those of a commit. Lists may have changed since, so a reference that
        may not be read is no error and has an unknown value.
    """

    read: Callable[[str], bytes | None]
    environ: Mapping[str, str]
    variables: Mapping[str, JSON]
    allow_exec: bool = False
    assume_env: bool = False
    declared: Readable = field(default_factory=Readable)
    trusted: Readable = field(default_factory=Readable)
    key_variables: frozenset[str] = frozenset()
    for_api_key: bool = False
    of_commit: bool = False
    expanding: list[str] = field(default_factory=list)


class FillContext(Struct, frozen=True):
    """What a provider can use while files are loaded.

    rules
        What references may read.
    expand
        Return a variable with its own references filled in.
    is_outside
        Return whether a path is outside the workspace.
    unknown_text
        Return text with unknown content.
    report
        Record an error at the reference, by code, message and hint.
    failed
        The unknown value, for use after an error.
    """

    rules: FillRules
    expand: Callable[[str], JSON]
    is_outside: Callable[[str], bool]
    unknown_text: Callable[[str], JSON]
    report: Callable[[str, str, str], None]
    failed: JSON

    def refuse(self, code: str, message: str, hint: str) -> JSON:
        """Report an error at the reference, and return the unknown value."""
        self.report(code, message, hint)
        return self.failed


class SecretContext(Struct, frozen=True):
    """What a provider can use to look up a secret.

    `for_api_key`: the secret is the API key, whose reference comes from a trusted place.
    """

    settings: SecretSettings
    environ: Mapping[str, str]
    for_api_key: bool = False


Fill: TypeAlias = Callable[[str, FillContext], JSON]
Accepts: TypeAlias = Callable[[str, FillContext], bool]


class Provider(Struct, frozen=True):
    """One provider of values.

    argument
        The name of the argument in hints, for example PATH.
    fill
        Return the value of a plain reference. None for a provider of secrets only.
    accepts
        Return whether a secret reference is valid, and report errors. None for a provider without
        secret references.
    look_up
        Return the value of a secret. Raises SecretUnavailable.
    effortless
        Whether the look-up is instant and has no effects. The values of such secrets are known
        before anything is printed, so that they can be masked.
    from_outside
        Whether plain values are text from outside of the files, which may be a number or a boolean.
    canonical
        Return one text for all arguments of secret references that mean the same.
    origin
        Return where the value of a plain reference comes from, for `show`.
    position
        The position in hints. Equal ones are sorted by name.
    """

    name: str
    argument: str = "NAME"
    fill: Fill | None = None
    accepts: Accepts | None = None
    look_up: Callable[[SecretSource, SecretContext], str] | None = None
    effortless: bool = False
    from_outside: bool = False
    canonical: Callable[[str], str] = str
    origin: Callable[[str, Mapping[str, str]], FieldOrigin] | None = None
    position: int = 100

    def origin_of(self, argument: str, environ: Mapping[str, str]) -> FieldOrigin:
        """Return where a value comes from; by default, the name of the provider."""
        if self.origin is None:
            return FieldOrigin(self.name, None)
        return self.origin(argument, environ)


def without_line_end(text: str) -> str:
    """Return text without the final line break that editors and commands add."""
    return text.removesuffix("\n").removesuffix("\r")
