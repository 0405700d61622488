"""Diagnostics: errors, warnings and notes about the files with places; results with errors."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Generic, TypedDict, TypeVar, Unpack

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.errors import LoadingStopped, ReconcilerError, meaning
from reconciler.exit_codes import ExitCode

_R = TypeVar("_R")


class Level(StrEnum):
    """The level of a diagnostic: an error stops the run, a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Mark(Struct, frozen=True, order=True, gc=False):
    """A place in a file. Lines and columns count from 1, columns in characters.

    `file` is relative to the workspace folder, with forward slashes.
    """

    file: str
    """Path, relative to the workspace."""
    line: int = 1
    """Line."""
    column: int = 1
    """Column."""
    length: int = 1
    """Length of the marked text."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(Struct, frozen=True):
    """An error or a warning about the files.

    `code` is stable kebab-case; messages may change. `hint` is the fix. `line` is the source line,
    None without one and for one with a secret. `related` are further places with labels.
    `environments` are those that have the problem, empty if all of them do or it is in none.
    `about` is the address and the path of a value that the service may accept, empty without one.
    """

    code: str
    level: Level
    message: str
    at: Mark | None = None
    hint: str | None = None
    line: str | None = None
    related: tuple[tuple[Mark, str], ...] = ()
    environments: tuple[str, ...] = ()
    about: tuple[str | int, ...] = ()

    def joined(self, other: Diagnostic) -> Diagnostic:
        """Return the same problem of other environments as one."""
        everywhere = not (self.environments and other.environments)
        names = () if everywhere else dict.fromkeys(self.environments + other.environments)
        related = dict.fromkeys(self.related + other.related)
        return replace(self, environments=tuple(names), related=tuple(related))

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """File, line, column, code and message: the order of reports."""
        at = self.at or Mark("", 0, 0)
        return (at.file, at.line, at.column, self.code, self.message)


MAX_DIAGNOSTICS = 100_000


class Details(TypedDict, total=False):
    """Optional parts of a diagnostic. The hint of its code is the default hint."""

    at: Mark | None
    hint: str | None
    related: tuple[tuple[Mark, str], ...]
    about: tuple[str | int, ...]


class DiagnosticCollector(Struct):
    """Diagnostics of a run. With `strict`, warnings are recorded as errors.

    Errors with a code in `lenient` are recorded as warnings, warnings with one in `ignored` are
    not recorded. `environment` is the one that is checked, empty if it is the only one or none is.
    """

    strict: bool = False
    lenient: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    diagnostics: list[Diagnostic] = field(default_factory=list)
    environment: str = ""

    def error(self, code: str, message: str, **details: Unpack[Details]) -> None:
        """Record an error."""
        level = Level.WARNING if code in self.lenient else Level.ERROR
        self._add(code, level, message, details)

    def warning(self, code: str, message: str, **details: Unpack[Details]) -> None:
        """Record a warning, which is an error when `strict`, unless its code is ignored."""
        if code in self.ignored:
            return
        level = Level.ERROR if self.strict else Level.WARNING
        self._add(code, level, message, details)

    def note(self, code: str, message: str, **details: Unpack[Details]) -> None:
        """Record a note, which is never an error."""
        self._add(code, Level.NOTE, message, details)

    def _add(self, code: str, level: Level, message: str, details: Details) -> None:
        details["hint"] = details.get("hint") or meaning(code).hint
        environments = (self.environment,) if self.environment else ()
        self.diagnostics.append(
            Diagnostic(code, level, message, environments=environments, **details)
        )
        if len(self.diagnostics) >= MAX_DIAGNOSTICS:
            message = f"stopped after {MAX_DIAGNOSTICS:,} errors and warnings"
            self.diagnostics.append(Diagnostic("too-many-diagnostics", Level.ERROR, message))
            raise LoadingStopped(message)

    @property
    def failed(self) -> bool:
        """Whether an error was recorded."""
        # Usually asked after one: the latest come first, since there may be many warnings.
        return any(diagnostic.level is Level.ERROR for diagnostic in reversed(self.diagnostics))

    def in_order(self, environments: Collection[str] = ()) -> tuple[Diagnostic, ...]:
        """Return the diagnostics by file and line, without duplicates.

        Those of all the environments that were checked name none.
        """
        unique: dict[object, Diagnostic] = {}
        for diagnostic in self.diagnostics:
            identity = (diagnostic.sort_key, diagnostic.hint)
            known = unique.get(identity)
            unique[identity] = diagnostic if known is None else known.joined(diagnostic)
        checked = set(environments)
        ordered = sorted(unique.values(), key=lambda diagnostic: diagnostic.sort_key)
        return tuple(
            replace(diagnostic, environments=())
            if checked and checked == set(diagnostic.environments)
            else diagnostic
            for diagnostic in ordered
        )


class InvalidConfiguration(ReconcilerError):
    """Errors in the files. Carries all diagnostics of the run."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        errors = sum(diagnostic.level is Level.ERROR for diagnostic in diagnostics)
        super().__init__(f"{errors} error{'s' if errors != 1 else ''} in the configuration")
        self.diagnostics = diagnostics


class OfEnvironment(Struct, Generic[_R], frozen=True):
    """The result of an environment, or its error: one of both is None.

    `cost` is what applying a plan takes, as text.
    """

    environment: str
    result: _R | None = None
    error: ReconcilerError | None = None
    exit_code: ExitCode = ExitCode.FINE
    cost: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors, each in one line."""
        if isinstance(self.error, InvalidConfiguration):
            return tuple(
                f"{item.at}: {item.message}" if item.at is not None else item.message
                for item in self.error.diagnostics
                if item.level is Level.ERROR
            )
        message = self.error.message if self.error is not None else ""
        return tuple(message.replace("\n  ", "; ").splitlines())
