"""What an import does to existing files: resources and text it removes, namesakes, and a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.authoring.extras import Extra, extras_in
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.importing.attempting import Attempt
from reconciler.importing.context import ImportContext
from reconciler.model.address import Address
from reconciler.model.file_change import FileChange, Side
from reconciler.model.imported import Namesake
from reconciler.model.json_tree import leaves
from reconciler.model.kind import Kind
from reconciler.model.redaction import redact_line
from reconciler.model.reference import references_in
from reconciler.model.values import JSON, path_text, secret_refs
from reconciler.workspace.loading import Loaded
from reconciler.workspace.redact_file import redact_file
from reconciler.workspace.yaml.loader import parse


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
        yield from ((file, what) for what in _removed_extras(text, attempt.texts[file]))


def _removed_extras(before: str, after: str) -> Iterator[str]:
    """Yield each comment, anchor, alias and merge key of a text that another one lacks."""
    kept = {line.strip() for line in after.splitlines()}
    for extra in extras_in(before):
        if extra.text not in kept:
            yield f"{_described(extra)} in line {extra.line}"


def _described(extra: Extra) -> str:
    if extra.text.startswith("*"):
        return f"alias {extra.text} (replaced by its value)"
    if extra.text.startswith("&"):
        return f"anchor {extra.text}"
    return f"comment {redact_line(extra.text)}" if extra.text.startswith("#") else "merge key"


def _has_plain_reference(value: JSON) -> bool:
    return isinstance(value, str) and any(not ref.is_secret for ref in references_in(value))


def namesakes(attempt: Attempt, context: ImportContext, loaded: Loaded) -> Iterator[Namesake]:
    """Yield new resources with the name and parent of a resource of another environment."""
    elsewhere = {
        _place_of(address, loaded, context.kinds_by_name[address.kind]): address
        for address in loaded.declared
        if address not in loaded.desired.resources
    }
    for address, (adoption, _) in attempt.written.items():
        parent = context.parent_of(adoption.live)
        parent_name = parent.name.strip() if parent is not None else ""
        place = (address.kind, adoption.live.name.strip(), parent_name)
        if place in elsewhere:
            yield Namesake(address, elsewhere[place])


def _place_of(address: Address, loaded: Loaded, kind: Kind) -> tuple[str, str, str]:
    """Return kind, name and name of the parent, as far as the file has them."""
    body = loaded.declared[address].body
    parent_name = ""
    if kind.parent is not None and kind.parent_key is not None:
        parent_name = str(body.get(kind.parent_key))
        parent = loaded.declared.get(Address(kind.parent, parent_name))
        parent_name = str(parent.body.get("name")).strip() if parent is not None else parent_name
    return address.kind, str(body.get("name")).strip(), parent_name


def changes_of(texts: Mapping[str, str], before: Mapping[str, str]) -> dict[str, FileChange]:
    """Return the change of each file.

    Only old lines can contain literal secrets: they are redacted on both sides.
    """
    changes: dict[str, FileChange] = {}
    for name, text in texts.items():
        old = before.get(name, "")
        redacted = redact_file(parse(old.encode(), "", DiagnosticCollector()))
        shown = dict(zip(old.splitlines(), redacted, strict=True))
        after = tuple(shown.get(line, line) for line in text.splitlines())
        changes[name] = FileChange(
            Side(tuple(old.splitlines(keepends=True)), redacted),
            Side(tuple(text.splitlines(keepends=True)), after),
        )
    return changes
