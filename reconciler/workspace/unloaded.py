"""Find resources in YAML files of a workspace that were not loaded, whatever the reason.

Files are searched as text, since what was not loaded may have errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from reconciler.workspace.limits import MAX_ENTRIES, MAX_FILE_BYTES
from reconciler.workspace.sources import SKIPPED_FOLDERS

_SUFFIXES = (".yaml", ".yml")
_KEYS = re.compile(r"(?:^|[\s{,\"'])(\w[\w.-]*)[\"']?\s*:", re.MULTILINE | re.ASCII)


def keys_in_unloaded(folder: Path, loaded: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the keys at any depth of each file that was not loaded, by name.

    Hidden folders, those of other workspaces and all cases of file name suffixes are included.
    """
    return {
        name: frozenset(_KEYS.findall(path.read_text(encoding="utf-8", errors="replace")))
        for name, path in _yaml_files(folder)
        if name not in loaded
    }


def _yaml_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the regular files below a folder that can be read, up to a limit of entries."""
    entries = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            return
        for file in sorted(files):
            path = Path(parent, file)
            if not file.lower().endswith(_SUFFIXES) or path.is_symlink() or not path.is_file():
                continue
            if path.stat().st_size <= MAX_FILE_BYTES and os.access(path, os.R_OK):
                yield path.relative_to(folder).as_posix(), path
