"""One check of `doctor`."""

from __future__ import annotations

from reconciler.errors import ReconcilerError
from reconciler.model.public import Public, Term


class Health(Term):
    """How a check ended."""

    FINE = "fine", "As it should be."
    WARNING = "warning", "It works in part, or could not be checked."
    FAILED = "failed", "It does not work."


class Check(Public, frozen=True):
    """One check."""

    name: str
    health: Health
    result: str
    fix: str = ""
    """What to do about it, empty for nothing."""

    @classmethod
    def fine(cls, name: str, result: str) -> Check:
        """Return a check that needs no fix."""
        return cls(name, Health.FINE, result)

    @classmethod
    def warning(cls, name: str, result: str, fix: str = "") -> Check:
        """Return a check of what works in part, or could not be checked."""
        return cls(name, Health.WARNING, result, fix)

    @classmethod
    def failed(cls, name: str, result: str, fix: str = "") -> Check:
        """Return a check of what does not work."""
        return cls(name, Health.FAILED, result, fix)

    @classmethod
    def of(cls, name: str, error: ReconcilerError) -> Check:
        """Return a failed check, with the message and hint of an error."""
        return cls.failed(name, error.message, error.hint or "")
