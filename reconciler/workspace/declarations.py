"""Find the resource files of a workspace, and the resources that they declare."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.errors import DiagnosticCollector, Mark, UnreadableFile
from reconciler.model.address import Address
from reconciler.model.globs import TooComplex, has_wildcard, matching
from reconciler.model.kind import Kind
from reconciler.model.suggestion import choice
from reconciler.model.values import Path
from reconciler.workspace.hints import shortened
from reconciler.workspace.limits import (
    MAX_FILES,
    MAX_PATTERNS,
    MAX_TOTAL_BYTES,
    MAX_TOTAL_NODES,
    MAX_WILDCARD_PATTERNS,
)
from reconciler.workspace.sources import WORKSPACE_FILE, Source, leaves_workspace
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Document, Unknown
from reconciler.workspace.yaml.loader import Parse, parse

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ALL_YAML = ("**/*.yaml", "**/*.yml")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A resource as a file declares it."""

    address: Address
    document: Document
    path: Path
    body: Mapping[str, Any]

    @property
    def mark(self) -> Mark:
        """The place of its key."""
        return self.document.key_mark(self.path)


@dataclass(slots=True)
class Undetermined:
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
            if isinstance(members, dict):
                addresses |= {Address(kind, key) for kind in names for key in members}
            elif members is not None:
                unclear |= names
    return Undetermined(
        frozenset(unclear), {address for address in addresses if address not in declared}
    )


def documents(
    source: Source, workspace: Workspace, problems: DiagnosticCollector, *, parse: Parse = parse
) -> list[Document]:
    """Return every resource file, parsed, sorted by name. Those after a limit are unread."""
    files: list[Document] = []
    nodes = 0
    for name, raw in contents(source, workspace, problems):
        if raw is None or nodes > MAX_TOTAL_NODES:
            files.append(Document(name, unread=True))
            continue
        document = parse(raw, name, problems)
        files.append(document)
        nodes += document.nodes
        if nodes > MAX_TOTAL_NODES:
            _report_end(f"{MAX_TOTAL_NODES:,} values", name, problems)
    return files


def contents(
    source: Source, workspace: Workspace, problems: DiagnosticCollector
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the name and bytes of every resource file, sorted; None for unreadable bytes."""
    names = _resource_files(source, workspace, problems)
    size = 0
    for name in names:
        raw = _read(source, name, problems) if size <= MAX_TOTAL_BYTES else None
        yield name, raw
        if raw is not None:
            size += len(raw)
            if size > MAX_TOTAL_BYTES:
                _report_end(f"{MAX_TOTAL_BYTES:,} bytes", name, problems)


def _resource_files(
    source: Source, workspace: Workspace, problems: DiagnosticCollector
) -> Sequence[str]:
    """Return the names of the resource files, sorted. Report errors in their patterns."""
    globs = resource_globs(workspace)
    at = workspace.mark(("resources",))
    wildcards = sum(map(has_wildcard, globs))
    if len(globs) > MAX_PATTERNS or wildcards > MAX_WILDCARD_PATTERNS:
        problems.error(
            "bad-pattern",
            f"{len(globs):,} patterns, {wildcards:,} with wildcards: the limits are "
            f"{MAX_PATTERNS:,} and {MAX_WILDCARD_PATTERNS}",
            at=at,
        )
        return ()
    try:
        matches = files_by_glob(source, globs)
    except TooComplex as error:
        problems.error("bad-pattern", error.message, at=at)
        return ()
    if isinstance(workspace.value.get("resources"), list):
        _check_globs(matches, workspace, problems)
    names = sorted({name for selected in matches.values() for name in selected})
    if len(names) > MAX_FILES:
        message = f"{len(names):,} resource files: the limit is {MAX_FILES:,}"
        problems.error("workspace-too-large", message, at=at)
        return ()
    return names


def _read(source: Source, name: str, problems: DiagnosticCollector) -> bytes | None:
    try:
        raw = source.read(name)
    except UnreadableFile as error:
        problems.error(error.code, error.message, at=Mark(name))
        return None
    if raw is None:
        problems.error(
            "unreadable-file",
            f"cannot read {name}: a link that is broken or leaves the folder",
            at=Mark(name),
        )
    return raw


def _report_end(limit: str, name: str, problems: DiagnosticCollector) -> None:
    message = f"more than {limit} in all files: those after {name} are not read"
    problems.error("workspace-too-large", message, at=Mark(name))


def files_by_glob(source: Source, globs: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the resource files that each pattern matches. Patterns stay in the workspace.

    Raises TooComplex.
    """
    names = [name for name in source.names() if name != WORKSPACE_FILE]
    return {glob: matching(names, glob) for glob in globs if not leaves_workspace(glob)}


def resource_globs(workspace: Workspace) -> tuple[str, ...]:
    """Return the patterns of resource files; by default every YAML file."""
    globs = workspace.value.get("resources")
    return tuple(map(str, globs)) if isinstance(globs, list) else _ALL_YAML


def _check_globs(
    matches: Mapping[str, Sequence[str]], workspace: Workspace, problems: DiagnosticCollector
) -> None:
    for position, glob in enumerate(resource_globs(workspace)):
        at = workspace.mark(("resources", position))
        if leaves_workspace(glob):
            problems.error(
                "outside-workspace",
                f"'{glob}' is outside the workspace",
                at=at,
                hint="keep resource files below the folder of reconciler.yaml",
            )
        elif not matches[glob]:
            problems.warning("no-files", f"no file matches '{glob}'", at=at)


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
                        f"`{collection}` must be a mapping from keys to resources",
                        at=document.mark((collection,)),
                        hint="write `key:` for each resource, with its fields below",
                    )
            else:
                _collect(kind, document, collection, members, declared, problems)
    return declared


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
