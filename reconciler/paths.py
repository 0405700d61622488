"""What the files of a workspace are called, which count, and how large they may be."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from reconciler.errors import UnreadableFile

WORKSPACE_FILE = "reconciler.yaml"
YAML_SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})
MAX_FILE_BYTES = 10_000_000
MAX_FILES = 50_000
MAX_NODES = 1_000_000
"""Values of a file with aliases expanded: an alias bomb is small as text and huge as a value."""
MAX_DEPTH = 60

MAX_REFERENCE = 1_000
"""Characters of a reference without its default, which messages show in full."""
MAX_EXPANDED = 100_000
"""Values that one reference expands to; 100 characters of a text count as one value."""
MAX_TOTAL_EXPANDED = 10_000_000


def content_id(raw: bytes) -> str:
    """Return what identifies the content of a file, the same for both kinds of line ends.

    It is the id that git gives the content with line feeds, in a repository with SHA-1.
    """
    # Imported here, since it loads OpenSSL (3 ms).
    from hashlib import sha1

    text = raw.replace(b"\r\n", b"\n")
    return sha1(b"blob %d\0%b" % (len(text), text), usedforsecurity=False).hexdigest()


def is_passed_over(folder: str) -> bool:
    """Return whether a folder of this name is skipped: hidden and vendored ones."""
    return folder in SKIPPED_FOLDERS or folder.startswith(".")


def is_own(name: str, nested: Collection[str]) -> bool:
    """Return whether a file belongs to the workspace.

    Hidden files do not, nor those in folders that are passed over. `nested` are the folders of
    other workspaces, of which only the workspace files count.
    """
    path = PurePosixPath(name)
    inside = path.parent if path.name == WORKSPACE_FILE else path
    return not (
        path.name.startswith(".")
        or any(map(is_passed_over, path.parts[:-1]))
        or (nested and any(str(folder) in nested for folder in inside.parents))
    )


def too_large(name: str, size: int) -> UnreadableFile:
    """Return the error for a file that is larger than the limit."""
    return UnreadableFile(
        f"{name} has {size:,} bytes: the limit is {MAX_FILE_BYTES:,} bytes", code="file-too-large"
    )


def leaves_workspace(glob: str) -> bool:
    """Return whether a path or glob points outside the folder."""
    path = PurePosixPath(glob.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or bool(re.match(r"[A-Za-z]:", glob))
