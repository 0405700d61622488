"""Apply a plan: requests, events and the audit log. The plan makes every decision."""

from reconciler.applying.run import execute

__all__ = ["execute"]
