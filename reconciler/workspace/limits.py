"""The limits of what is read from files, which anybody may propose (docs/configuration.md)."""

from __future__ import annotations

MAX_FILE_BYTES = 10_000_000
MAX_FILES = 50_000
MAX_TOTAL_BYTES = 200_000_000
MAX_ENTRIES = 1_000_000
"""Entries of all folders below the workspace, whatever they are."""
MAX_FOLDER_DEPTH = 100
MAX_ENVIRONMENTS = 500
MAX_PATTERNS = 1_000
MAX_WILDCARD_PATTERNS = 100

MAX_NODES = 1_000_000
"""Values of a file with aliases expanded: an alias bomb is small as text and huge as a value."""
MAX_TOTAL_NODES = 10_000_000
MAX_DEPTH = 60
MAX_TAG_LINES = 10
"""The parser compares each one with all others."""

MAX_REFERENCE = 1_000
"""Characters of a reference without its default, which messages show in full."""
MAX_EXPANDED = 100_000
"""Values that one reference expands to; 100 characters of a text count as one value."""
MAX_TOTAL_EXPANDED = 10_000_000
