"""Install a wheel into a new environment and run the demo: scripts/try_wheel.py FILE.whl.

The folder of the commands is a temporary one, where no file of this repository can be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
_SECONDS = 600


def main(wheel: Path) -> None:
    """Install the wheel with the versions of constraints.txt, then plan and apply with it."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        tools = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        words = ("install", "--quiet", "-c", ROOT / "constraints.txt", f"{wheel}[emulator]")
        _run(folder, tools / "pip", *words)
        for words in (("--version",), ("validate", "-C", ROOT / "examples/acme"), ("demo",)):
            _run(folder, tools / "reconciler", *words)


def _run(folder: str, *words: str | Path) -> None:
    """Run a command in a folder. Raise CalledProcessError or TimeoutExpired."""
    # What the repository sets for itself does not count.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(  # noqa: S603 - words of this file, no shell
        list(map(str, words)), cwd=folder, env=environ, check=True, timeout=_SECONDS
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
