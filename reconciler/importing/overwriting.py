"""What `import --force` removes from files that it overwrites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.errors import ReconcilerError
from reconciler.importing.attempting import Attempt
from reconciler.model.json_tree import leaves
from reconciler.model.reference import references_in
from reconciler.model.values import JSON, path_text, secret_refs
from reconciler.model.wording import several
from reconciler.workspace import Loaded


def check_overwriting(loaded: Loaded, attempt: Attempt) -> None:
    """Raise ReconcilerError if a resource would be lost, or changed for other environments."""
    overwritten = {
        address: declaration
        for address, declaration in sorted(loaded.declared.items(), key=lambda item: str(item[0]))
        if declaration.document.file in attempt.texts
    }
    lost = [
        f"{address} ({declaration.document.file})"
        for address, declaration in overwritten.items()
        if address not in attempt.written
    ]
    if lost:
        raise ReconcilerError(
            f"--force would remove resources that are not imported: {', '.join(lost)}; "
            "nothing was written",
            hint="import them too, or move them to another file first",
        )
    environment = loaded.desired.environment
    shared = [
        str(address)
        for address, declaration in overwritten.items()
        if set(declaration.body.get("environments", loaded.environments)) - {environment}
    ]
    if shared:
        raise ReconcilerError(
            f"--force would write live state of {environment} to resources of other environments, "
            f"too: {', '.join(shared)}; nothing was written",
            hint="edit them manually, or import into other files",
        )


def removed_from_files(
    loaded: Loaded, attempt: Attempt, before: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each file with something that it no longer has: overrides, references, comments."""
    for address, (_, file) in attempt.written.items():
        declaration = loaded.declared.get(address)
        if declaration is None or declaration.document.file != file:
            continue
        if declaration.body.get("overrides"):
            yield file, f"overrides of {address}"
        for path, ref in secret_refs(loaded.desired.resources[address].spec):
            if ref.is_literal:
                yield file, f"the literal secret in {path_text(path)} of {address}"
        for path, value in leaves(dict(declaration.body)):
            if "overrides" not in path[:1] and _has_plain_reference(value):
                yield file, f"{value} in {path_text(path)} of {address} (replaced by its value)"
    for file, text in before.items():
        kept = {line.strip() for line in attempt.texts[file].splitlines()}
        comments = [
            line
            for line in text.splitlines()
            if line.lstrip().startswith("#") and line.strip() not in kept
        ]
        if comments:
            yield file, f"{several(len(comments), 'line')} of comments"


def _has_plain_reference(value: JSON) -> bool:
    return isinstance(value, str) and any(not ref.is_secret for ref in references_in(value))
