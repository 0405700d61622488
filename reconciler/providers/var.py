"""`${var:NAME}`: a variable of the workspace or of the environment."""

from __future__ import annotations

from reconciler.model.reference import with_default
from reconciler.model.suggestion import choice
from reconciler.model.values import JSON
from reconciler.providers.provider import Filling, Provider


def _fill(name: str, filling: Filling) -> JSON:
    if name in filling.expanding:
        circle = " → ".join([*filling.expanding, name])
        return filling.refuse(
            "variable-cycle",
            f"the variable {name} needs itself: {circle}",
            "give one of them a value of its own",
        )
    if name not in filling.variables:
        known = sorted(filling.variables) or ["none"]
        hint = (
            choice(name, known, "variables here")
            if with_default(name)[1] is None
            else "a variable has no default here: give it a value in `vars:`"
        )
        return filling.refuse("unknown-variable", f"there is no variable '{name}'", hint)
    return filling.expand(name)


PROVIDER = Provider("var", fill=_fill, position=1)
