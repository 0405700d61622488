"""`${var:NAME}`: a variable of the workspace or of the environment."""

from __future__ import annotations

from reconciler.model.text import choice
from reconciler.model.values import JSON, with_default
from reconciler.providers.provider import FillContext, Provider


def _fill(name: str, context: FillContext) -> JSON:
    variables = context.rules.variables
    if name in context.rules.expanding:
        cycle = " → ".join([*context.rules.expanding, name])
        hint = "set one of them to a value without a reference"
        return context.refuse("variable-cycle", f"variable cycle: {cycle}", hint)
    if name not in variables:
        hint = choice(name, frozenset(variables) or ["none"], "variables")
        if with_default(name)[1] is not None:
            hint = "remove the default, and set the value in `vars:`"
        return context.refuse("unknown-variable", f"unknown variable '{name}'", hint)
    return context.expand(name)


PROVIDER = Provider("var", fill=_fill, position=1)
