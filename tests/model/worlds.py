"""Run worlds of all dialects: `python -m tests.model.worlds FIRST COUNT`.

World n has the seed n // 3 and the dialect n % 3. Prints the disagreements. With `--stop`, it ends
at the first one, and prints how many worlds it took. With `--plan`, only `plan` runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.model.comparing import reproduced
from tests.support.emulator import DIALECTS


def disagreements(numbers: range, *, only_plan: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the number of each world that disagrees, with its seed and what disagrees."""
    for number in numbers:
        seed, dialect = number // len(DIALECTS), DIALECTS[number % len(DIALECTS)]
        try:
            problems = reproduced(seed, dialect, only_plan=only_plan)
        except Exception as error:  # noqa: BLE001 - a crash is a disagreement
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            yield number, f"seed {seed}, {dialect}: " + "\n  ".join(problems)


def main(arguments: list[str]) -> int:
    """Run the worlds; return 1 if any disagrees."""
    first, count = int(arguments[0]), int(arguments[1])
    code = 0
    numbers, only_plan = range(first, first + count), "--plan" in arguments
    for number, text in disagreements(numbers, only_plan=only_plan):
        code = 1
        if "--stop" in arguments:
            sys.stdout.write(f"{number - first + 1} {text}\n".replace("\n", " "))
            break
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
