"""Replace literal secrets in fields by references to them, or report them."""

from __future__ import annotations

from typing import Any

from reconciler.model.schemas import holds_secret
from reconciler.model.values import JSON, Path, SecretRef, holds_reference, path_text, value_at
from reconciler.workspace.managed_fields import ManagedFields
from reconciler.workspace.references import References
from reconciler.workspace.schema.validation import CheckContext
from reconciler.workspace.yaml.document import Places, is_misread


def replace_literals(
    spec: dict[str, JSON],
    managed: ManagedFields,
    references: References,
    places: Places,
    check: CheckContext,
) -> None:
    """Replace the literal secrets in fields by references to them, or report them."""
    urls = [path for path in managed.with_at if holds_secret(value_at(spec, path))]
    for path in (*managed.secret, *urls) if urls else managed.secret:
        value = value_at(spec, path)
        if _is_reference(value) or value is None or is_misread(value):
            continue
        literal = _reference_to(value, f"{check.subject}:{path_text(path)}", references)
        if literal is None:
            _report_literal(path, places, check)
            continue
        holder: Any = spec
        for part in path[:-1]:
            holder[part] = dict(holder[part])
            holder = holder[part]
        holder[path[-1]] = literal


def _reference_to(value: JSON, argument: str, references: References) -> SecretRef | None:
    """Return a reference to a literal secret, None if the policy forbids those, or it is empty."""
    if isinstance(value, SecretRef):
        return references.without_literals(argument, value)
    return references.literal(argument, value) if str(value).strip() else None


def _is_reference(value: JSON) -> bool:
    """Return whether a value is one secret and nothing else."""
    if value.__class__ is not SecretRef:
        return False
    return len(value.parts) == 1 or str not in map(type, value.parts)


def _report_literal(path: Path, places: Places, check: CheckContext) -> None:
    layer, nearest = places.source_of(path)
    written = value_at(layer.value, nearest)
    named = check.named(path)
    if isinstance(written, str) and "${secret:" in written:
        message = f"{named} is a secret and must not be written in a file, not even in part"
        hint = "use one reference for the whole value, such as ${secret:env:NAME}"
    elif isinstance(written, str) and holds_reference(written):
        message = f"{named} is a secret, but this reference is filled in as plain text"
        hint = "use ${secret:env:NAME} or ${secret:file:PATH}"
    else:
        message = f"{named} is a secret and must not be written in a file"
        hint = (
            "use a reference such as ${secret:env:NAME}, and rotate the secret if the file was "
            "ever shared"
        )
    check.error("literal-secret", path, message, hint)
