"""Check that edited text has the expected values, and say which place cannot be edited."""

from __future__ import annotations

from typing import Any

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import ReconcilerError
from reconciler.model.json_tree import walk
from reconciler.model.values import JSON, value_at
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse


def copied(value: JSON) -> Any:
    """Return a copy in which aliases share nothing."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def check_text(document: Document, text: str, expected: JSON) -> None:
    """Raise ReconcilerError if a new text of a file has other values than expected."""
    problems = DiagnosticCollector()
    after = parse(text.encode(), document.file, problems)
    if not problems.failed and after.value == expected:
        return
    places = [diagnostic.at for diagnostic in problems.diagnostics]
    places += [
        after.mark(path)
        for path, value in walk(after.value)
        if not isinstance(value, (dict, list)) and value_at(expected, path) != value
    ]
    raise unsafe(next(filter(None, places), Mark(document.file)))


def unsafe(mark: Mark) -> ReconcilerError:
    """Return the error for a place that cannot be edited."""
    return ReconcilerError(
        f"{mark}: cannot edit this place safely; nothing was written",
        hint="write the key here without an anchor, a merge key or escapes, or edit it manually",
    )
