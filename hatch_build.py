"""Write the schemas for editors when the package is built or installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EditorSchemas(BuildHookInterface[Any]):
    """Compose schemas/editor/ from the schemas of the kinds; the files are not committed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files below the source folder, also for an editable install."""
        del version, build_data
        root = Path(self.root)
        sys.path.insert(0, str(root))
        from reconciler.kinds import all_kinds
        from scripts.editor_schemas import editor_files

        for name, text in editor_files(all_kinds()).items():
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
