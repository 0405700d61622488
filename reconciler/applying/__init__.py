"""Apply a plan: requests, events and the audit log. The plan makes every decision."""

from reconciler.applying.audit_log import AuditLog
from reconciler.applying.executor import execute
from reconciler.applying.staleness import StaleChange, stale_changes
from reconciler.applying.stopping import StopRequest

__all__ = ["AuditLog", "StaleChange", "StopRequest", "execute", "stale_changes"]
