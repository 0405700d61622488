"""Alternate between composing the files of a workspace and loading it, in one process.

Run: python loading.py FOLDER ENVIRONMENT ROUNDS. Prints a JSON list of pairs: the CPU seconds of
composing with the garbage collector paused, and of loading and checking as a command does.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, "")

import yaml

from reconciler.files.loading import load


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds that the work takes, without freeing its result."""
    gc.collect()
    begun = time.process_time()
    made = work()
    spent = time.process_time() - begun
    del made
    return spent


def main() -> None:
    """Measure and print."""
    folder, environment, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    texts = [file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.yaml"))]
    pairs = []
    for _ in range(rounds):
        gc.disable()
        composed = cpu(lambda: [yaml.compose(text, Loader=yaml.CSafeLoader) for text in texts])
        gc.enable()
        loaded = cpu(lambda: load(folder, environment=environment, environ=os.environ))
        pairs.append((composed, loaded))
    print(json.dumps(pairs))


main()
