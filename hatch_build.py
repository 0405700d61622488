"""Write generated files and metadata when the package is built or installed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class GeneratedFiles(BuildHookInterface[Any]):
    """Compose schemas/editor/ from the kinds; they are not committed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files below the source folder, also for an editable install."""
        del version, build_data
        root = Path(self.root)
        sys.path.insert(0, str(root))
        from reconciler.kinds import all_kinds
        from scripts.editor_schemas import editor_files

        for name, text in editor_files(all_kinds()).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


class Links(MetadataHookInterface):
    """Set the addresses of the project, and those in the README, from reconciler/version.py."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `urls` and `readme`."""
        root = Path(self.root)
        sys.path.insert(0, str(root))
        from scripts.readme import absolute_readme, addresses

        values = runpy.run_path(str(root / "reconciler/version.py"))
        repository, tag = values["REPOSITORY"], f"v{values['__version__']}"
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = addresses(repository, tag)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_readme(text, repository, tag),
        }
