"""The words and signs that all formats share."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.change import Action, Danger, Origin, Reason, SecretUse

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

DANGERS: Mapping[Danger, str] = {
    Danger.DANGER: "DANGER",
    Danger.WARNING: "warning",
    Danger.INFO: "note",
}
