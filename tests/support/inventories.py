"""Write the inventory of an environment without an apply."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_inventory(
    folder: Path,
    ref: str,
    commit: str,
    lines: Mapping[str, Any] | str,
    *,
    name: str = "inventory.json",
) -> None:
    """Let a reference of a clone have entries, or a text. `commit` is the newest applied one."""
    text = lines if isinstance(lines, str) else json.dumps(lines)
    stream = f"commit {ref}\ncommitter T <t@t.example> 1780000000 +0000\ndata 1\nx\n"
    stream += f"from {commit}\n" if commit else ""
    stream += f"deleteall\nM 644 inline {name}\ndata {len(text.encode())}\n{text}\n\n"
    command = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(command, cwd=folder, input=stream.encode(), check=True)
