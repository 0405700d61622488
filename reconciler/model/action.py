"""What a change does to an object."""

from __future__ import annotations

from reconciler.model.public import Term


class Action(Term):
    """What is done to an object."""

    CREATE = "create", "Create the object, which does not exist yet."
    UPDATE = "update", "Change it in place with one PATCH."
    REPLACE = "replace", "Create a new one, then delete the old: a field can't change in place."
    PAUSE = "pause", "Pause it by a call of its own."
    UNPAUSE = "unpause", "Unpause it by a call of its own."
    DELETE = "delete", "Delete it."
    NO_OP = "no-op", "Live state matches the configuration."

    @property
    def destructive(self) -> bool:
        """Whether data or history is lost."""
        return self in (Action.DELETE, Action.REPLACE)
