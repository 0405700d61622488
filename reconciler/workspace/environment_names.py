"""Tell whether a text depends on an environment variable, directly or through variables."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.values import JSON, leaves, references_in
from reconciler.providers.env import PROVIDER as ENVIRONMENT
from reconciler.providers.var import PROVIDER as VARIABLES


def reads_environment(written: JSON, variables: Mapping[str, JSON]) -> bool:
    """Return whether a value as written, or a variable that it names, has `${env:…}`."""
    if written.__class__ is str and "${" not in written:
        return False
    waiting, seen = [written], set()
    while waiting:
        texts = [text for _, text in leaves(waiting.pop()) if isinstance(text, str)]
        for reference in (item for text in texts if "${" in text for item in references_in(text)):
            if reference.provider == ENVIRONMENT.name:
                return True
            if reference.provider == VARIABLES.name and reference.argument not in seen:
                seen.add(reference.argument)
                waiting.append(variables.get(reference.argument))
    return False
