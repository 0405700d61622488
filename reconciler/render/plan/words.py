"""The words and signs of plans that all formats share."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.change import Action, Change, Danger, Origin, Reason, SecretUse
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
    Reason.NOT_LIVE: "declared, and not there yet",
    Reason.FIELDS_DIFFER: "live differs from the files",
    Reason.CHANGED_IN_FILES: "changed in the files",
    Reason.DRIFTED: "drifted on the live side",
    Reason.CONFLICT: "conflict: changed in the files and on the live side",
    Reason.REMOVED_KEY: "a key was removed from the files",
    Reason.RENAMED: "renamed",
    Reason.STATE_ABSENT: "the files say `state: absent`",
    Reason.REMOVED_FROM_FILES: "removed from the files since the git base",
    Reason.PRUNED: "no resource claims it, and the policy prunes",
    Reason.MOVED: "belongs to another project now",
    Reason.FIXED_FIELD: "the service can't change this in place",
    Reason.SECRET_ROTATED: "secrets are sent again, as asked",
    Reason.SECRET_CHANGED: "a secret changed in the files",
    Reason.UNDO: "undone",
}

SECRET_USES: Mapping[SecretUse, str] = {
    SecretUse.CREATE: "sent: new object",
    SecretUse.ROTATE: "sent: --rotate-secrets",
    SecretUse.REFERENCE_CHANGED: "sent: its reference changed",
    SecretUse.VERSION_CHANGED: "sent: secret_version changed",
    SecretUse.NEEDED: "sent: this change needs it",
    SecretUse.UNREADABLE: "not sent: nothing says that it changed",
}

ORIGINS: Mapping[Origin, str] = {
    Origin.FILES: "changed in the files",
    Origin.LIVE: "drifted",
    Origin.BOTH: "conflict",
    Origin.UNKNOWN: "",
}

SEVERITIES: Mapping[Danger, str] = {
    Danger.DANGER: "DANGER",
    Danger.WARNING: "warning",
    Danger.INFO: "note",
}

NO_CHANGES = "No changes: the live side is as the files say."

_ALWAYS_COUNTED = (Action.CREATE, Action.UPDATE, Action.DELETE)


def summary(plan: Plan) -> str:
    """Return `Plan: 3 to create, 1 to update, 1 to pause, 0 to delete, 7 unchanged`."""
    counts = plan.counts
    parts = [
        f"{counts[action]} to {action.value}"
        for action in Action
        if action is not Action.NO_OP and (counts[action] or action in _ALWAYS_COUNTED)
    ]
    return f"Plan: {', '.join(parts)}, {counts[Action.NO_OP]} unchanged"


def title(change: Change) -> str:
    """Return the address, and the name where it differs from the key."""
    name = printable(change.name)
    return str(change.address) if name == change.address.key else f'{change.address} "{name}"'


def shortened(text: str, longest: int = 120) -> str:
    """Return at most so many characters of a text."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
