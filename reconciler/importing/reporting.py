"""What import reports besides the texts: resources of the same name, and a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.errors import DiagnosticCollector
from reconciler.importing.attempting import Attempt
from reconciler.importing.context import ImportContext
from reconciler.model.address import Address
from reconciler.model.file_change import FileChange, Side
from reconciler.model.imported import Namesake
from reconciler.model.kind import Kind
from reconciler.workspace import Loaded
from reconciler.workspace.redact_file import redact_file
from reconciler.workspace.yaml.loader import parse


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
