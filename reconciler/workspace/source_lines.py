"""Add source lines to diagnostics. Most runs have none of these, and import no masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.diagnostics import Diagnostic
from reconciler.workspace.yaml.document import Document


def with_lines(
    diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with their lines, secrets masked in lines and messages."""
    if not diagnostics:
        return ()
    from reconciler.workspace.redact_lines import masked_with_lines

    return masked_with_lines(diagnostics, documents)
