"""Finds what is declared: the resource files of a workspace, and each resource in them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.errors import DiagnosticCollector, Mark
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.suggestion import choice
from reconciler.model.values import Path
from reconciler.workspace.hints import (
    shortened,
)
from reconciler.workspace.sources import WORKSPACE_FILE, Source, leaves_workspace, matching
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Document, Unknown
from reconciler.workspace.yaml.loader import parse

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_EVERYTHING = ("**/*.yaml", "**/*.yml")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A resource as a file declares it, and its place."""

    address: Address
    document: Document
    path: Path
    body: Mapping[str, Any]

    @property
    def mark(self) -> Mark:
        """The place of its key."""
        return self.document.key_mark(self.path)


@dataclass(slots=True)
class Doubts:
    """What is unknown because of errors that are reported already.

    Of `kinds` any resource may be declared, besides those that are found; `addresses` are declared,
    or may be; of `states` it is unknown whether they shall exist.
    """

    kinds: frozenset[str] = frozenset()
    addresses: set[Address] = field(default_factory=set)
    states: set[Address] = field(default_factory=set)

    def about(self, address: Address) -> bool:
        """Whether a resource may be declared although it was not found."""
        return address.kind in self.kinds or address in self.addresses

    def copied(self) -> Doubts:
        """The same, to be added to: what is in doubt in one environment may not be in others."""
        return Doubts(self.kinds, set(self.addresses), set(self.states))


def doubts(
    files: Sequence[Document], declared: Container[Address], kinds: Sequence[Kind]
) -> Doubts:
    """What is declared in the files and not found, since something is wrong with it."""
    collections = {kind.collection: kind.name for kind in kinds}
    every = frozenset(collections.values())
    unclear: set[str] = set()
    addresses: set[Address] = set()
    for document in files:
        if not isinstance(document.value, dict):
            unclear |= every if document.unread or document.value is not None else frozenset()
            continue
        for collection, members in document.value.items():
            kind = collections.get(collection)
            if isinstance(members, dict):
                # Below a name that is no collection there may be resources of any kind.
                meant = every if kind is None else {kind}
                addresses |= {Address(kind_name, key) for kind_name in meant for key in members}
            elif members is not None:
                unclear |= every if kind is None else {kind}
    return Doubts(frozenset(unclear), {address for address in addresses if address not in declared})


def documents(
    source: Source, workspace: Workspace, problems: DiagnosticCollector
) -> list[Document]:
    """Every resource file, parsed, by name."""
    return [
        parse(raw, name, problems) if raw is not None else Document(name, unread=True)
        for name, raw in contents(source, workspace, problems)
    ]


def contents(
    source: Source, workspace: Workspace, problems: DiagnosticCollector
) -> Iterator[tuple[str, bytes | None]]:
    """The name and bytes of every resource file, by name; None for one that can't be read."""
    names = [name for name in source.names() if name != WORKSPACE_FILE]
    globs = workspace.value.get("resources")
    wanted: set[str] = set()
    if not isinstance(globs, list):
        wanted = {name for glob in resource_globs(workspace) for name in matching(names, glob)}
    else:
        for position, glob in enumerate(globs):
            wanted |= _matched(names, str(glob), workspace.mark(("resources", position)), problems)
    for name in sorted(wanted):
        raw = source.read(name)
        if raw is None:
            problems.error(
                "unreadable-file",
                f"{name} can't be read: it is a broken link, leads outside, or is protected",
                at=Mark(name),
            )
        yield name, raw


def resource_globs(workspace: Workspace) -> tuple[str, ...]:
    """Which files hold resources: what the workspace says, else every YAML file."""
    globs = workspace.value.get("resources")
    return tuple(map(str, globs)) if isinstance(globs, list) else _EVERYTHING


def _matched(names: Sequence[str], glob: str, at: Mark, problems: DiagnosticCollector) -> set[str]:
    if leaves_workspace(glob):
        problems.error(
            "outside-workspace",
            f"'{glob}' leads out of the workspace",
            at=at,
            hint="resource files are below reconciler.yaml",
        )
        return set()
    matches = set(matching(names, glob))
    if not matches:
        problems.warning("no-files", f"no file fits '{glob}'", at=at)
    return matches


def declarations(
    files: Sequence[Document], kinds: Sequence[Kind], problems: DiagnosticCollector
) -> dict[Address, Declaration]:
    """Every resource by address. A duplicate is reported with both places."""
    collections = {kind.collection: kind for kind in kinds}
    declared: dict[Address, Declaration] = {}
    for document in files:
        if not isinstance(document.value, dict):
            _report_odd_file(document, problems)
            continue
        for collection, members in document.value.items():
            kind = collections.get(collection)
            if kind is None:
                problems.error(
                    "unknown-field",
                    f"unknown field '{collection}' in a resource file",
                    at=document.key_mark((collection,)),
                    hint=choice(collection, collections),
                )
            elif not isinstance(members, dict):
                if members is not None and not isinstance(members, Unknown):
                    problems.error(
                        "not-a-mapping",
                        f"{collection} is a mapping from a key to a resource",
                        at=document.mark((collection,)),
                        hint="write each as `key:` with its fields below",
                    )
            else:
                _collect(kind, document, collection, members, declared, problems)
    return declared


def _report_odd_file(document: Document, problems: DiagnosticCollector) -> None:
    if document.unread or isinstance(document.value, Unknown):
        return
    if document.value is None:
        if not any(line.lstrip().startswith("#") for line in document.lines):
            problems.warning("empty-file", "this file is empty", at=Mark(document.file))
        return
    problems.error(
        "not-a-mapping",
        "a resource file holds a mapping",
        at=document.mark(()),
        hint="begin it with a line such as `batch_exports:`",
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
        if "${" in key:  # reported when it was read
            continue
        declaration = Declaration(Address(kind.name, key), document, (collection, key), body)
        if not _KEY.fullmatch(key):
            problems.error(
                "bad-key",
                f"'{shortened(key)}' can't be the key of a resource",
                at=declaration.mark,
                hint="use letters, digits, _ - and . only; the `name:` may be anything",
            )
        elif isinstance(body, Unknown):
            continue
        elif not isinstance(body, dict):
            problems.error(
                "not-a-mapping",
                f"{declaration.address} has no fields",
                at=declaration.mark,
                hint="write its fields below the key, indented",
            )
        elif declaration.address in declared:
            problems.error(
                "declared-twice",
                f"{declaration.address} is declared twice",
                at=declaration.mark,
                related=((declared[declaration.address].mark, "it is declared here first"),),
            )
        else:
            declared[declaration.address] = declaration
