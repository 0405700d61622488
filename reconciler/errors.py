"""What can go wrong, in the field's words: the lowest floor, imported by all others.

Two channels that never mix. *Diagnostics* are for what a person wrote: values, collected in
`DiagnosticCollector`, reported together. *Exceptions* are for what happened:

    ReconcilerError                 exit 1
    ├── InvalidConfiguration        1   carries diagnostics
    ├── BadUsage                    64  flags that contradict each other
    ├── AmbiguousIdentity           1   two live objects could be one resource
    ├── SecretUnavailable           1   a secret reference that can't be resolved
    ├── GitUnavailable              1   the git base can't be read
    ├── StalePlan                   4
    ├── RefusedByPolicy             5
    └── ServiceError                1   the API said no, or nothing
        ├── Unauthorized            401
        ├── Forbidden               403
        ├── NotFound                404
        ├── Conflict                409
        ├── Invalid                 400, 415, 422
        ├── Throttled               429
        ├── Unavailable             5xx and no connection, when nothing can have happened
        └── AmbiguousOutcome        the request may or may not have taken effect
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import ClassVar, TypedDict, Unpack

from reconciler.codes import meaning


class ExitCode(IntEnum):
    """Exit codes of the command line ."""

    FINE = 0
    ERROR = 1
    CHANGES = 2
    PARTLY_APPLIED = 3
    STALE = 4
    REFUSED = 5
    USAGE = 64
    INTERRUPTED = 130


class Severity(StrEnum):
    """How much a diagnostic matters: an error stops the run, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file. Lines and columns count from 1, columns in characters.

    `file` is relative to the workspace folder, with forward slashes. `length` is how many
    characters of the line the caret underlines, at least 1.
    """

    file: str
    line: int = 1
    column: int = 1
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, or doubtful, in what a person wrote.

    `code` is stable kebab-case; the sentence may improve. `line` is the offending source line
    with secrets already masked, or None where there is none to show; `marked` is where the place
    is in that line, as positions from 0 to one behind the last, since masks have a length of
    their own. `hint` is the fix. `related` names further places, each with a word on why it
    matters.
    """

    code: str
    severity: Severity
    message: str
    at: Mark | None = None
    hint: str | None = None
    line: str | None = None
    related: tuple[tuple[Mark, str], ...] = ()
    marked: tuple[int, int] | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """File, line, column, code, message: the order in which diagnostics are reported."""
        at = self.at or Mark("", 0, 0)
        return (at.file, at.line, at.column, self.code, self.message)


class Details(TypedDict, total=False):
    """What a diagnostic may say besides its message. The hint of its code is the default."""

    at: Mark | None
    hint: str | None
    related: tuple[tuple[Mark, str], ...]


@dataclass(slots=True)
class DiagnosticCollector:
    """Collects diagnostics while the work goes on with what it has.

    With `strict`, warnings of open enumerations and the like are reported as errors.
    """

    strict: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, message: str, **details: Unpack[Details]) -> None:
        """Record an error."""
        self._add(code, Severity.ERROR, message, details)

    def warning(self, code: str, message: str, **details: Unpack[Details]) -> None:
        """Record a warning, which is an error when `strict`."""
        severity = Severity.ERROR if self.strict else Severity.WARNING
        self._add(code, severity, message, details)

    def _add(self, code: str, severity: Severity, message: str, details: Details) -> None:
        hint = details.get("hint") or meaning(code).hint
        details = {**details, "hint": hint}
        self.diagnostics.append(Diagnostic(code, severity, message, **details))

    @property
    def failed(self) -> bool:
        """Whether an error was recorded."""
        return any(diagnostic.severity is Severity.ERROR for diagnostic in self.diagnostics)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All diagnostics by file and line, each once."""
        unique = {
            (diagnostic.sort_key, diagnostic.hint): diagnostic for diagnostic in self.diagnostics
        }
        return tuple(sorted(unique.values(), key=lambda diagnostic: diagnostic.sort_key))


class ReconcilerError(Exception):
    """The root. `hint` says how to fix it and is shown on a line of its own."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidConfiguration(ReconcilerError):
    """The files do not describe a workspace. Carries every diagnostic of the run."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
        super().__init__(f"{errors} error{'s' if errors != 1 else ''} in the configuration")
        self.diagnostics = diagnostics


class BadUsage(ReconcilerError):
    """Options that contradict each other, or a value no option takes."""

    exit_code = ExitCode.USAGE


class AmbiguousIdentity(ReconcilerError):
    """Two live objects could be one resource, or two resources claim one object."""


class SecretUnavailable(ReconcilerError):
    """A secret reference can't be resolved. The message names the reference, never a value."""


class GitUnavailable(ReconcilerError):
    """The workspace can't be read at the git base."""


class StalePlan(ReconcilerError):
    """The live side, the files or the tool moved since the plan was made."""

    exit_code = ExitCode.STALE


class RefusedByPolicy(ReconcilerError):
    """A guard refused the plan before the first request."""

    exit_code = ExitCode.REFUSED


class ServiceError(ReconcilerError):
    """The API refused or failed. `status` is None where no answer came.

    `code` and `attr` are the service's own words (docs/service.md 5); `detail` is its
    sentence, cut to a length that is safe to log.
    """

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
    """401: the key is missing, unknown or of the wrong form."""


class Forbidden(ServiceError):
    """403: a scope, a limit of the key, a role or a feature of the plan is missing."""

    @property
    def lacks_scope(self) -> bool:
        """Whether the key lacks a scope, by the service's words (docs/service.md, 12).

        The words for a key that is limited to projects have "scoped" in them, too.
        """
        return "missing required scope" in self.message


class NotFound(ServiceError):
    """404: no such object, organization or route."""


class Conflict(ServiceError):
    """409: the name is taken."""


class Invalid(ServiceError):
    """400 and its like: the request was understood and refused."""


class Throttled(ServiceError):
    """429: nothing happened; `retry_after` is how many seconds to wait, where known."""


class Unavailable(ServiceError):
    """The service could not be reached or failed, and the request was safe to repeat."""


class AmbiguousOutcome(ServiceError):
    """A request that changes something ended without an answer that says whether it did."""
