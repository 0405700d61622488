"""Write the inventory of an environment without an apply."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_inventory(folder: Path, ref: str, commit: str, lines: Mapping[str, Any]) -> None:
    """Let a reference of a clone have entries. `commit` is the newest applied one."""
    text = json.dumps(lines)
    stream = f"commit {ref}\ncommitter T <t@t.example> 1780000000 +0000\ndata 1\nx\n"
    stream += f"from {commit}\ndeleteall\n"
    stream += f"M 644 inline inventory.json\ndata {len(text.encode())}\n{text}\n\n"
    command = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(command, cwd=folder, input=stream.encode(), check=True)
