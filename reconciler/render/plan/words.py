"""Words and signs of plans, shared by all formats."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.change import Action, Change, Origin, Reason, SecretUse, Severity
from reconciler.model.plan import Plan
from reconciler.model.wording import printable

SIGNS: Mapping[Action, str] = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "±",
    Action.PAUSE: "⏸",
    Action.UNPAUSE: "▶",
    Action.DELETE: "-",
    Action.NO_OP: " ",
}

REASONS: Mapping[Reason, str] = {
    Reason.NOT_LIVE: "does not exist yet",
    Reason.FIELDS_DIFFER: "live state differs from the configuration",
    Reason.CHANGED_IN_FILES: "changed in the configuration",
    Reason.DRIFTED: "drift: live state changed, the configuration did not",
    Reason.CONFLICT: "conflict: live state and the configuration both changed",
    Reason.REMOVED_KEY: "a field was removed from the configuration",
    Reason.RENAMED: "renamed",
    Reason.STATE_ABSENT: "the configuration sets `state: absent`",
    Reason.REMOVED_FROM_FILES: "removed from the configuration since the git base",
    Reason.PRUNED: "unmanaged, and policy.prune includes it",
    Reason.MOVED: "moved to another project",
    Reason.FIXED_FIELD: "a field can't be changed in place",
    Reason.SECRET_ROTATED: "secrets are sent again (--rotate-secrets)",
    Reason.SECRET_CHANGED: "a secret changed in the configuration",
    Reason.UNDO: "undoes an applied change",
}

SECRET_USES: Mapping[SecretUse, str] = {
    SecretUse.CREATE: "sent (new object)",
    SecretUse.ROTATE: "sent (--rotate-secrets)",
    SecretUse.REFERENCE_CHANGED: "sent (reference changed)",
    SecretUse.VERSION_CHANGED: "sent (secret_version changed)",
    SecretUse.NEEDED: "sent (required by this change)",
    SecretUse.UNREADABLE: "not sent (no change detected)",
}

ORIGINS: Mapping[Origin, str] = {
    Origin.FILES: "changed in the configuration",
    Origin.LIVE: "drifted",
    Origin.BOTH: "conflict",
    Origin.UNKNOWN: "",
}

SEVERITIES: Mapping[Severity, str] = {
    Severity.DANGER: "DANGER",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}

NO_CHANGES = "No changes. Live state matches the configuration."

_ALWAYS_COUNTED = (Action.CREATE, Action.UPDATE, Action.DELETE)


def summary(plan: Plan) -> str:
    """Return `Plan: 3 to create, 1 to update, 1 to pause, 0 to delete. 7 unchanged.`."""
    counts = plan.counts
    parts = [
        f"{counts[action]} to {action.value}"
        for action in Action
        if action is not Action.NO_OP and (counts[action] or action in _ALWAYS_COUNTED)
    ]
    unchanged = f" {counts[Action.NO_OP]} unchanged." if counts[Action.NO_OP] else ""
    return f"Plan: {', '.join(parts)}.{unchanged}"


def title(change: Change) -> str:
    """Return the address, and the name where it differs from the key."""
    name = printable(change.name)
    return str(change.address) if name == change.address.key else f'{change.address} "{name}"'


def shortened(text: str, longest: int = 120) -> str:
    """Return at most `longest` characters of a text, with an ellipsis if it is cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
