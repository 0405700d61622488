"""What the options of every command say about the output of this run."""

from __future__ import annotations

from contextvars import ContextVar


class OutputSettings:
    """The common options, in the order of `--help`."""

    # A plain class, since --version needs neither msgspec nor dataclasses otherwise.
    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self.debug = False
        self.no_colour = False


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
