"""Find the resources that files declare."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.address import Address, choice
from reconciler.model.kind import Kind
from reconciler.model.values import Path, mapping_of, value_at
from reconciler.workspace.hints import shortened
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.sources import WORKSPACE_FILE
from reconciler.workspace.workspace_file import DEFAULTS
from reconciler.workspace.yaml.document import Document, Unknown

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Declaration(Struct, frozen=True):
    """A resource as a file declares it."""

    address: Address
    document: Document
    path: Path
    body: Mapping[str, Any]

    @property
    def mark(self) -> Mark:
        """The place of its key."""
        return self.document.key_mark(self.path)


class Undetermined(Struct):
    """What is unknown because of errors that are reported already.

    Any resource of `kinds` may be declared. Those of `addresses` are declared or may be. The state
    of those of `states` is unknown.
    """

    kinds: frozenset[str] = frozenset()
    addresses: set[Address] = field(default_factory=set)
    states: set[Address] = field(default_factory=set)

    def about(self, address: Address) -> bool:
        """Return whether a resource may be declared although it is not in the result."""
        return address.kind in self.kinds or address in self.addresses

    def copied(self) -> Undetermined:
        """Return a copy to add to, since environments differ in what is unknown."""
        return Undetermined(self.kinds, set(self.addresses), set(self.states))


def is_key(text: str) -> bool:
    """Return whether a text may be the key of a resource."""
    return _KEY.fullmatch(text) is not None


def undetermined_in(
    files: Sequence[Document], declared: Container[Address], kinds: Sequence[Kind]
) -> Undetermined:
    """Return what the files may declare, besides what is declared without errors."""
    collections = {kind.collection: kind.name for kind in kinds}
    all_kinds = frozenset(collections.values())
    unclear: set[str] = set()
    addresses: set[Address] = set()
    for document in files:
        if not isinstance(document.value, dict):
            unclear |= all_kinds if document.unread or document.value is not None else frozenset()
            continue
        for collection, members in document.value.items():
            # Below an unknown collection there may be resources of any kind.
            names = {collections[collection]} if collection in collections else all_kinds
            if collection == DEFAULTS:
                continue
            if isinstance(members, dict):
                addresses |= {Address(kind, key) for kind in names for key in members}
            elif members is not None:
                unclear |= names
    return Undetermined(
        frozenset(unclear), {address for address in addresses if address not in declared}
    )


def declarations(
    files: Sequence[Document], kinds: Sequence[Kind], problems: DiagnosticCollector
) -> dict[Address, Declaration]:
    """Return every resource by address. Report duplicates with both places."""
    collections = {kind.collection: kind for kind in kinds}
    declared: dict[Address, Declaration] = {}
    for document in files:
        if not isinstance(document.value, dict):
            _report_no_mapping(document, problems)
            continue
        for collection, members in document.value.items():
            kind = collections.get(collection)
            if collection == DEFAULTS:
                _check_defaults(document, kinds, problems)
            elif kind is None:
                problems.error(
                    "unknown-field",
                    f"unknown field '{collection}' in a resource file",
                    at=document.key_mark((collection,)),
                    hint=choice(collection, (*collections, DEFAULTS)),
                )
            elif not isinstance(members, dict):
                if members is not None and not isinstance(members, Unknown):
                    problems.error(
                        "not-a-mapping",
                        f"`{collection}` must be a mapping from keys to resources",
                        at=document.mark((collection,)),
                        hint="write `key:` for each resource, with its fields below",
                    )
            else:
                _collect(kind, document, collection, members, declared, problems)
    return declared


def _check_defaults(
    document: Document, kinds: Sequence[Kind], problems: DiagnosticCollector
) -> None:
    """Report defaults of a file that are not mappings, and those without effect."""
    fields = value_at(document.value, (DEFAULTS,))
    context = CheckContext(document.file, document.mark, document.key_mark, problems)
    check("workspace", {"version": 1, DEFAULTS: fields}, context)
    for kind in kinds:
        if kind.name in mapping_of(fields) and kind.collection not in mapping_of(document.value):
            problems.warning(
                "no-effect",
                f"`defaults.{kind.name}` without effect: {document.file} has no "
                f"`{kind.collection}`",
                at=document.key_mark((DEFAULTS, kind.name)),
                hint=f"move it to {WORKSPACE_FILE}, or to the file of the resources",
            )


def _report_no_mapping(document: Document, problems: DiagnosticCollector) -> None:
    if document.unread or isinstance(document.value, Unknown):
        return
    if document.value is None:
        if not any(line.lstrip().startswith("#") for line in document.lines):
            problems.warning("empty-file", "empty file", at=Mark(document.file))
        return
    problems.error(
        "not-a-mapping",
        "a resource file must be a mapping",
        at=document.mark(()),
        hint="start it with a line such as `batch_exports:`",
    )


def _collect(
    kind: Kind,
    document: Document,
    collection: str,
    members: Mapping[str, Any],
    declared: dict[Address, Declaration],
    problems: DiagnosticCollector,
) -> None:
    for key, body in members.items():
        if "${" in key:  # The loader has reported it.
            continue
        declaration = Declaration(Address(kind.name, key), document, (collection, key), body)
        if not _KEY.fullmatch(key):
            problems.error(
                "bad-key",
                f"invalid resource key '{shortened(key)}'",
                at=declaration.mark,
                hint="use letters, digits, _ - and . only; `name` may be any text",
            )
        elif isinstance(body, Unknown):
            continue
        elif not isinstance(body, dict):
            problems.error(
                "not-a-mapping",
                f"{declaration.address} has no fields",
                at=declaration.mark,
                hint="indent its fields below the key",
            )
        elif declaration.address in declared:
            problems.error(
                "declared-twice",
                f"{declaration.address} is declared twice",
                at=declaration.mark,
                related=((declared[declaration.address].mark, "first declared here"),),
            )
        else:
            declared[declaration.address] = declaration
