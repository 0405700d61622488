"""Doing: a plan to requests, told in events. Decides nothing that the plan has not decided."""

from reconciler.applying.executor import execute
from reconciler.applying.freshness import Moved, moved_since
from reconciler.applying.journal import Journal
from reconciler.applying.stopping import StopRequest

__all__ = ["Journal", "Moved", "StopRequest", "execute", "moved_since"]
