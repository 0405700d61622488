"""What the options of every command say about the output of this run."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


# No Struct: --version and --help run without msgspec.
@dataclass(slots=True)
class OutputSettings:
    """The common options, in the order of `--help`."""

    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    no_colour: bool = False


_CURRENT: ContextVar[OutputSettings] = ContextVar("output_settings")


def begin() -> None:
    """Start a run with the default settings."""
    _CURRENT.set(OutputSettings())


def current() -> OutputSettings:
    """Return the settings of this run."""
    try:
        return _CURRENT.get()
    except LookupError:
        begin()
        return _CURRENT.get()
