"""The command line: options to a request, the use case, the writer of its result."""

from __future__ import annotations

import gc
import signal
import sys

_ALLOCATIONS = 1_000_000
"""New containers until the youngest generation is collected. CPython's default is 700."""


def main() -> None:
    """Run the command line, and exit."""
    # A command creates many values and few cycles, so collecting garbage mostly costs time. This
    # begins with the imports, so that they come later.
    gc.set_threshold(_ALLOCATIONS)
    # `run` handles signals. Until then, Ctrl-C ends the process without a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from reconciler.commands.program import run

    code = run(sys.argv[1:])
    # The end of the process frees everything: no need to look for cycles first.
    gc.freeze()
    sys.exit(code)
