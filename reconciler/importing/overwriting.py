"""What `import --force` takes away when it writes files anew: nothing, or it is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.errors import ReconcilerError
from reconciler.importing.attempting import Attempt
from reconciler.model.json_tree import leaves
from reconciler.model.reference import references_in
from reconciler.model.values import JSON, path_text, secret_refs
from reconciler.model.wording import several
from reconciler.workspace import Loaded


def check_nothing_is_lost(loaded: Loaded, attempt: Attempt) -> None:
    """Writing a file anew must not make a resource go away, or change it for others.

    Raises ReconcilerError that names what would be lost.
    """
    rewritten = {
        address: found
        for address, found in sorted(loaded.declared.items(), key=lambda each: str(each[0]))
        if found.document.file in attempt.texts
    }
    lost = [
        f"{address} ({found.document.file})"
        for address, found in rewritten.items()
        if address not in attempt.written
    ]
    if lost:
        raise ReconcilerError(
            f"--force would drop what is not imported: {', '.join(lost)}",
            hint="import it too, or move it to another file first; nothing was written",
        )
    here = {loaded.desired.environment}
    shared = [
        str(address)
        for address, found in rewritten.items()
        if set(found.body.get("environments", loaded.environments)) - here
    ]
    if shared:
        raise ReconcilerError(
            f"--force would write what is live in {loaded.desired.environment} over resources of "
            f"other environments too: {', '.join(shared)}",
            hint="change them by hand, or import into other files; nothing was written",
        )


def gone_with(
    loaded: Loaded, attempt: Attempt, before: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The file, and what it says no more: overrides, references written out, comments."""
    for address, (_, file) in attempt.written.items():
        found = loaded.declared.get(address)
        if found is None or found.document.file != file:
            continue
        if found.body.get("overrides"):
            yield file, f"overrides of {address}"
        for path, ref in secret_refs(loaded.desired.resources[address].spec):
            if ref.is_literal:
                yield file, f"the literal secret in {path_text(path)} of {address}"
        for path, text in leaves(dict(found.body)):
            if "overrides" not in path[:1] and _holds_plain_reference(text):
                yield file, f"{text} in {path_text(path)} of {address}: the value is written out"
    for file, text in before.items():
        kept = {line.strip() for line in attempt.texts[file].splitlines()}
        comments = [
            line
            for line in text.splitlines()
            if line.lstrip().startswith("#") and line.strip() not in kept
        ]
        if comments:
            yield file, f"{several(len(comments), 'line')} of comments"


def _holds_plain_reference(value: JSON) -> bool:
    return isinstance(value, str) and any(not ref.is_secret for ref in references_in(value))
