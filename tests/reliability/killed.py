"""Run a command and kill it just before one of its file operations.

`python -m tests.reliability.killed FOLDER NUMBER ARGUMENTS...` ends with 137 at the operation of
this number, from 1, that writes in the folder, and else with the exit code of the command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from reconciler.commands import main

_CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate", "shutil.move")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def install(folder: Path, number: int) -> None:
    """Kill this process at the operation of a number."""
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if (is_write or event in _CHANGING) and str(arguments[0]).startswith(str(folder)):
            seen += 1
            if seen == number:
                os._exit(137)

    sys.addaudithook(hook)


if __name__ == "__main__":
    install(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
    sys.argv = ["reconciler", *sys.argv[3:]]
    main()
