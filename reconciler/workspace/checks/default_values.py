"""Check the values of `defaults`, which are errors even while every resource overrides them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec.structs import replace

from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.kind import Kind
from reconciler.workspace.checks.values import OF_ONE_VALUE, check_fields
from reconciler.workspace.inputs import converted
from reconciler.workspace.layers import EnvironmentContext
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.yaml.document import Places


def check_default_values(
    kind: Kind, context: EnvironmentContext, reported: set[Any], *, without: Container[str]
) -> None:
    """Report wrong values in the defaults of a kind, each field by itself.

    Required fields may be missing, and fields may contradict each other, since resources add and
    replace fields. `reported` are the codes and places of errors, to which new ones are added.
    Fields in `without` have no place in defaults.
    """
    layers, problems = context.layers_of(kind), context.problems
    if layers.defaults is None:
        return
    places = Places((layers.defaults,))
    # An error in a reference is reported by the resources that use it.
    references = replace(context.references, problems=DiagnosticCollector(), _cached={})
    own = {name: value for name, value in layers.default_values.items() if name not in without}
    values: Any = references.with_inputs(own, places.near)
    if references.has_inputs:
        values = converted(kind.name, values)
    own_problems = DiagnosticCollector(problems.strict, problems.lenient)
    own_problems.environment = problems.environment
    checked = CheckContext(
        f"`defaults.{kind.name}`", places.near, places.key, own_problems, places.written
    )
    misread = {path[:1] for path in check(kind.name, values, checked)}
    spec = {
        layers.canonical.get(name, name): value
        for name, value in values.items()
        if (name,) not in misread
    }
    check_fields(kind, spec, checked, annotated(kind.name, OF_ONE_VALUE, spec))
    for diagnostic in own_problems.diagnostics:
        identity = (diagnostic.code, diagnostic.at)
        if diagnostic.code != "missing-field" and identity not in reported:
            reported.add(identity)
            problems.diagnostics.append(diagnostic)
