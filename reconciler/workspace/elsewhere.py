"""Find what YAML files of a repository declare that a workspace did not load.

What was removed from one file may have moved to another one, or to another workspace. Where this
is not known, the file counts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.resource import Desired
from reconciler.model.values import mapping_of
from reconciler.workspace.sources import (
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    SKIPPED_FOLDERS,
    WORKSPACE_FILE,
    YAML_SUFFIXES,
)

_Names: TypeAlias = Mapping[Address, tuple[str, str | None]]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def declared_in_others(
    root: Path, folder: Path, read: Collection[Path], names: _Names, *, service: Desired
) -> Iterator[tuple[Address, str]]:
    """Yield the addresses that another file of a repository may declare, with the reason.

    `names` are the name of each object and of its project, None where that is not known. A file of
    the same workspace counts by the address, one of another workspace by the names.
    """
    loaded = {path.resolve() for path in read}
    own = folder.resolve()
    is_other = cache(partial(_is_other, service=service))
    for path, workspace in _files(root.resolve()):
        if path in loaded or (workspace not in (own, None) and is_other(workspace)):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        content = _parsed(text)
        shown = path.relative_to(root.resolve()).as_posix()
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
    """Yield every YAML file with the folder of its workspace, None outside of workspaces."""
    workspaces: dict[str, Path | None] = {}
    entries = 0
    for parent, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        above = workspaces.get(str(Path(parent).parent))
        workspace = Path(parent) if WORKSPACE_FILE in files else above
        workspaces[parent] = workspace
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            return
        for name in sorted(files):
            path = Path(parent, name)
            is_file = name.lower().endswith(YAML_SUFFIXES) and not path.is_symlink()
            if is_file and os.access(path, os.R_OK) and path.stat().st_size <= MAX_FILE_BYTES:
                yield path, workspace


def _parsed(text: str) -> Mapping[str, Any] | None:
    """Return the mapping that a file has, empty for another value, None if it can't be parsed."""
    try:
        return mapping_of(yaml.load(text, Loader=_LOADER))  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _is_other(workspace: Path | None, service: Desired) -> bool:
    """Return whether a workspace is known to be of another address or organization."""
    if workspace is None:
        return False
    try:
        content = _parsed((workspace / WORKSPACE_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return False
    places = [
        content or {},
        *map(mapping_of, mapping_of((content or {}).get("environments")).values()),
    ]
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
    """Return whether a text is a name, or reads a variable."""
    return "${" in str(text) or str(text).strip() == name
