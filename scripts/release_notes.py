"""Print the section of a release in CHANGELOG.md: scripts/release_notes.py vX.Y.Z.

Exits with 1 if the tag is not the version of the package, if the changelog has no section for it,
or if changelog.d/ has changes that are not in the changelog.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def release_notes(root: Path, tag: str) -> str:
    """Return the section of a tag without its heading. Raise ValueError if something is missing."""
    version = runpy.run_path(str(root / "reconciler/version.py"))["__version__"]
    if tag != f"v{version}":
        raise ValueError(f"tag {tag} is not the version {version} of reconciler/version.py")
    if waiting := sorted(path.name for path in root.glob("changelog.d/[0-9+]*.md")):
        raise ValueError(f"not in CHANGELOG.md: {', '.join(waiting)}; run towncrier build")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    for section in sections:
        heading, _, body = section.partition("\n")
        if heading.split()[0] == version:
            return f"{body.strip()}\n"
    raise ValueError(f"CHANGELOG.md has no section for {version}; run towncrier build")


if __name__ == "__main__":
    try:
        notes = release_notes(ROOT, sys.argv[1])
    except ValueError as error:
        sys.exit(f"error: {error}")
    sys.stdout.buffer.write(notes.encode())
