"""The exceptions that end a command, and the codes of diagnostics with their hints: `codes.toml`.

SARIF and docs/reference/diagnostics.md show the codes apart from the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, Self

from reconciler.exit_codes import ExitCode


class Meaning(NamedTuple):
    """What a code means.

    `hint` is the default hint of its diagnostics. `fix` is the general advice for a code whose
    diagnostics have hints of their own.
    """

    title: str
    fix: str | None = None
    hint: str | None = None

    @property
    def help(self) -> str:
        """The advice, as a sentence."""
        text = self.fix or self.hint or "see the message for the fix"
        return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


@cache
def codes() -> Mapping[str, Meaning]:
    """Return the meaning of every code. Most runs have no diagnostics, and read no file."""
    import tomllib

    from reconciler.packaged import packaged

    text = packaged("codes.toml").read_text(encoding="utf-8")
    return {code: Meaning(**words) for code, words in tomllib.loads(text).items()}


def meaning(code: str) -> Meaning:
    """Return the meaning of a code; for an unknown code, a title from its words."""
    words = code.replace("-", " ")
    return codes().get(code, Meaning(words[:1].upper() + words[1:]))


class ReconcilerError(Exception):
    """The root of all exceptions. `hint` says how to fix it and is shown on a line of its own.

    After a change was sent, `exit_code` is 3 in place of those below, unless interrupted.

    ReconcilerError                 exit 1
    ├── InvalidConfiguration        1   errors in the files (diagnostics.py)
    ├── BadUsage                    64  invalid options
    ├── SecretUnavailable           1   a secret reference that cannot be resolved
    ├── GitUnavailable              1   an inventory that cannot be read
    ├── UnreadableFile              1   a file that exists and cannot be read
    ├── LoadingStopped              1   too many errors, or values, to load the files
    ├── FilesChanged                1   the files or HEAD changed while they were loaded
    ├── StalePlan                   4
    ├── RefusedByPolicy             5
    ├── Interrupted                 130
    ├── Expired                     a request that was not sent in time
    └── ServiceError                1   an error of the API or the connection
        ├── Unauthorized            401
        ├── Forbidden               403
        ├── NotFound                404
        ├── Conflict                409
        ├── Invalid                 400, 415, 422
        ├── Throttled               429
        ├── Unavailable             5xx or no connection, and nothing can have happened
        ├── GivenUp                 not sent, since too many requests failed before
        ├── AmbiguousOutcome        outcome unknown
        └── InvalidResponse         a response that can't be believed
            └── IncompleteList      a list that contradicts itself in every reading
    """

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def reworded(self, message: str | None = None, *, hint: str | None = None) -> Self:
        """Return the error with another message or hint, and the place where it began."""
        other = self.__class__.__new__(self.__class__)
        other.__dict__.update(self.__dict__)
        other.message = message if message is not None else self.message
        other.hint = hint if hint is not None else self.hint
        other.args = (other.message,)
        return other.with_traceback(self.__traceback__)


def system_error(error: OSError) -> ReconcilerError:
    """Return an error of the system with the name of its file."""
    reason = error.strerror or type(error).__name__
    return ReconcilerError(f"{error.filename}: {reason}" if error.filename else reason)


class BadUsage(ReconcilerError):
    """Options that contradict each other, or an invalid value of an option."""

    exit_code = ExitCode.USAGE


class OutputOfWorkspace(BadUsage):
    """An option names a file to write that the workspace loads."""


class SecretUnavailable(ReconcilerError):
    """A secret reference cannot be resolved. The message has the reference, never a value."""

    def naming(self, reference: str, written: str) -> SecretUnavailable:
        """Return the error with a reference as the files write it."""
        hint = self.hint.replace(reference, written) if self.hint is not None else None
        return SecretUnavailable(self.message.replace(reference, written), hint=hint)


class UnreadableFile(ReconcilerError):
    """A file exists and cannot be read. `code` is that of its diagnostic."""

    def __init__(self, message: str, *, code: str = "unreadable-file") -> None:
        super().__init__(message, hint=meaning(code).hint)
        self.code = code


class LoadingStopped(ReconcilerError):
    """Loading stopped, since its errors or its values would fill the memory. It is reported."""


class FilesChanged(ReconcilerError):
    """The files or HEAD changed while the files were loaded."""


class GitUnavailable(ReconcilerError):
    """The inventory, or the git history that it names, cannot be read."""


class GitMissing(GitUnavailable):
    """Git is not installed."""


class StalePlan(ReconcilerError):
    """Live state, the files or the tool changed since the plan was made."""

    exit_code = ExitCode.STALE


class RefusedByPolicy(ReconcilerError):
    """The policy refuses the plan. No request was sent."""

    exit_code = ExitCode.REFUSED


class Interrupted(ReconcilerError):
    """A stop was requested. The request was not sent, or it was a read."""

    exit_code = ExitCode.INTERRUPTED


class Expired(ReconcilerError):
    """A request was not sent: it had to wait too long after what it relies on was read."""


class ServiceError(ReconcilerError):
    """An error of the API. `status` is None without an answer.

    `code` and `attr` are from the body of the answer (service.md, 5). `attempts` counts how
    often the request was sent; `unclear` is whether an attempt before the last may have taken
    effect.
    """

    attempts = 1
    unclear = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        code: str | None = None,
        attr: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.attr = attr
        self.retry_after = retry_after


class Unauthorized(ServiceError):
    """401: the key is missing, unknown or malformed."""


class Forbidden(ServiceError):
    """403: a scope, a limit of the key, a role or a feature of the plan is missing."""

    @property
    def lacks_scope(self) -> bool:
        """Whether the key lacks a scope (service.md, 12).

        The message about a key that is limited to projects contains "scoped", too.
        """
        return "missing required scope" in self.message

    @property
    def is_of_organization(self) -> bool:
        """Whether the key reaches other organizations only (service.md, 12)."""
        return "access to the requested organization" in self.message


class NotFound(ServiceError):
    """404: no such object, organization or route."""


class Conflict(ServiceError):
    """409: the name is taken."""


class Invalid(ServiceError):
    """400, 415 or 422: the request was understood and refused."""


class Throttled(ServiceError):
    """429: nothing happened. `retry_after` is the time to wait in seconds, None if unknown."""


class Unavailable(ServiceError):
    """The service could not be reached or failed, and the request was safe to repeat.

    `sent` is False where the request certainly did not reach the service.
    """

    sent = True


class GivenUp(ServiceError):
    """A request was not sent, since too many requests before it failed."""


class AmbiguousOutcome(ServiceError):
    """The outcome of a request is unknown: it may or may not have taken effect."""

    @classmethod
    def after(cls, error: ServiceError, message: str) -> AmbiguousOutcome:
        """Return the unknown outcome of a request whose last attempt ended with an error."""
        unknown = cls(message, hint=error.hint, status=error.status, code=error.code)
        unknown.attempts, unknown.unclear = error.attempts, True
        return unknown


class InvalidResponse(ServiceError):
    """A successful response whose content contradicts the API or the request."""


class IncompleteList(InvalidResponse):
    """A list does not agree with its own count, also when it is read again."""
