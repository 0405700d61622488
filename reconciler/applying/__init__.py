"""Apply a plan: requests, events and the audit log. The plan makes every decision."""

from reconciler.applying.audit_log import AuditLog
from reconciler.applying.executor import execute
from reconciler.applying.staleness import stale_changes

__all__ = ["AuditLog", "execute", "stale_changes"]
