"""Find what YAML files of a repository declare that a workspace did not load.

What was removed from one file may have moved to another one, or to another workspace. Where this
is not known, the file counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml

from reconciler.errors import ReconcilerError, UnreadableFile
from reconciler.files.sources import FolderSource
from reconciler.git.repository import Repository
from reconciler.kinds import kinds_by_name
from reconciler.model.resource import Desired
from reconciler.model.values import Address, mapping_of
from reconciler.paths import SKIPPED_FOLDERS, WORKSPACE_FILE, YAML_SUFFIXES

MAX_ENTRIES = 1_000_000
_Names: TypeAlias = Mapping[Address, tuple[str, str | None]]
# It takes every scalar as text, whatever its tag: files of others need not be strict.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MERGE = re.compile("<<[\"']?\\s*:")


def declared_in_others(
    repository: Repository, folder: Path, read: Collection[Path], names: _Names, *, service: Desired
) -> Iterator[tuple[Address, str]]:
    """Yield the addresses that another file of a repository may declare, with the reason.

    `names` are the name of each object and of its project, None where that is not known. A file of
    the same workspace counts by the address, one of another workspace by the names. If a file
    is not here or cannot be read, it may declare all.
    """
    try:
        if repository.is_sparse:
            raise UnreadableFile("this sparse checkout leaves out YAML files")
        yield from _declared(FolderSource(repository.root), folder.resolve(), read, names, service)
    except ReconcilerError as error:
        yield from ((at, f"another file may declare it: {error.message}") for at in names)


def _declared(
    source: FolderSource, own: Path, read: Collection[Path], names: _Names, service: Desired
) -> Iterator[tuple[Address, str]]:
    loaded = {path.resolve() for path in read}
    is_other = cache(partial(_is_other, source, service=service))
    for path, workspace in _files(source.folder):
        if Path(os.path.realpath(path)) in loaded or (workspace != own and is_other(workspace)):
            continue
        shown = path.relative_to(source.folder).as_posix()
        text = _text(source, shown)
        content = _parsed(text)
        for address, (name, parent) in names.items():
            if content is None:
                is_declared = name in text or address.key in text
            elif workspace == own:
                collection = kinds_by_name()[address.kind].collection
                is_declared = address.key in mapping_of(content.get(collection))
            else:
                is_declared = _declares(content, address.kind, name, parent)
            if is_declared:
                yield address, f"{shown} may declare it"


def _files(root: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield every YAML file with the folder of its workspace, None outside of workspaces.

    Raises UnreadableFile for a folder that cannot be read, and for too many entries.
    """
    workspaces: dict[str, Path | None] = {}
    entries = 0
    for parent, folders, files in os.walk(root, onerror=_stop):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        above = workspaces.get(str(Path(parent).parent))
        workspace = Path(parent) if WORKSPACE_FILE in files else above
        workspaces[parent] = workspace
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            raise UnreadableFile(f"more than {MAX_ENTRIES:,} files and folders in the repository")
        for name in sorted(files):
            if name.lower().endswith(YAML_SUFFIXES):
                yield Path(parent, name), workspace


def _stop(error: OSError) -> NoReturn:
    raise UnreadableFile(f"cannot read folder {error.filename}: {error.strerror}")


def _text(source: FolderSource, name: str) -> str:
    """Return the text of a file. Raises UnreadableFile."""
    raw = source.read(name)
    if raw is not None:
        with suppress(UnicodeDecodeError):
            return raw.decode()
    raise UnreadableFile(f"cannot read {name}")


def _parsed(text: str) -> Mapping[str, Any] | None:
    """Return the mapping that a file has, empty for another value, None if it can't be parsed."""
    if _MERGE.search(text):
        return None
    try:
        return mapping_of(yaml.load(text, Loader=_LOADER))  # noqa: S506 - no tag makes an object
    except (yaml.YAMLError, RecursionError):
        return None


def _is_other(source: FolderSource, workspace: Path | None, service: Desired) -> bool:
    """Return whether a workspace is known to be of another address or organization."""
    content: Mapping[str, Any] = {}
    if workspace is not None:
        with suppress(ReconcilerError):
            name = (workspace / WORKSPACE_FILE).relative_to(source.folder).as_posix()
            content = _parsed(_text(source, name)) or {}
    places = [content, *map(mapping_of, mapping_of(content.get("environments")).values())]
    wanted = {"base_url": service.base_url.rstrip("/"), "organization": service.organization}
    for key, value in wanted.items():
        given = [str(place[key]).rstrip("/") for place in places if key in place]
        if given and not any("${" in text or text.lower() == value.lower() for text in given):
            return True
    return False


def _declares(content: Mapping[str, Any], kind: str, name: str, parent: str | None) -> bool:
    """Return whether a file may declare an object of a name in a project of a name."""
    kinds = kinds_by_name()
    field = kinds[kind].parent
    parents = mapping_of(content.get(kinds[field].collection)) if field is not None else {}
    for item in map(mapping_of, mapping_of(content.get(kinds[kind].collection)).values()):
        if not any(_may_be(text, name) for text in _texts(item, "name")):
            continue
        for ref in _texts(item, field) if field is not None and parent is not None else ():
            above = mapping_of(parents.get(ref)) if isinstance(ref, str) else mapping_of(ref)
            if not above or any(_may_be(text, parent) for text in _texts(above, "name")):
                return True
        if parent is None or field not in item:
            return True
    return False


def _texts(item: Mapping[str, Any], key: str) -> list[Any]:
    """Return the values of a field, with those of overrides."""
    overrides = map(mapping_of, mapping_of(item.get("overrides")).values())
    return [place[key] for place in (item, *overrides) if key in place]


def _may_be(text: Any, name: str | None) -> bool:
    """Return whether a value is a name, or reads a variable, or is no text."""
    return not isinstance(text, str) or "${" in text or text.strip() == name
