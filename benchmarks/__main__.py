"""Measure scenarios: python -m benchmarks [NAME…]."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import counted, timed
from benchmarks.measuring import Settings
from benchmarks.results import counts, differences

SCENARIOS = {**timed.SCENARIOS, **counted.SCENARIOS}
EXPECTED = Path(__file__).with_name("expected.json")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, epilog=f"Names: {', '.join(SCENARIOS)}."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="Scenarios. Default: all.")
    parser.add_argument("--quick", action="store_true", help="Smaller workloads, fewer rounds.")
    parser.add_argument("--rounds", type=int, help="Rounds to take the minimum of. Default: 5.")
    parser.add_argument(
        "--checkout", type=Path, metavar="FOLDER", help="Compare with the program of a checkout."
    )
    parser.add_argument(
        "--check", action="store_true", help="Compare calls and modules with expected.json."
    )
    parser.add_argument(
        "--update", action="store_true", help="Write calls and modules to expected.json."
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in SCENARIOS]
    if unknown:
        parser.error(f"unknown scenarios: {', '.join(unknown)}")
    return arguments


def main() -> int:
    """Measure and print, or compare what is counted. Return the exit code."""
    arguments = _arguments()
    if arguments.check or arguments.update:
        return _check(update=arguments.update)
    settings = Settings(
        rounds=arguments.rounds or (2 if arguments.quick else 5),
        quick=arguments.quick,
        checkout=arguments.checkout and arguments.checkout.resolve(),
    )
    # The peak memory of this process counts for its children: the largest scenario comes last.
    for name, scenario in SCENARIOS.items():
        if name in (arguments.names or SCENARIOS):
            print("\n".join(scenario(settings).text()), flush=True)
    return 0


def _check(*, update: bool) -> int:
    """Return 1 if commands make other calls, or import other modules, than expected.json says."""
    results = counts([measured(Settings()) for measured in counted.SCENARIOS.values()])
    if update:
        EXPECTED.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        return 0
    lines = differences(json.loads(EXPECTED.read_bytes()), results)
    print("\n".join(lines) or "Calls and imported modules are as expected.")
    if lines:
        print("If that is right, run: python -m benchmarks --update, and review the difference.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
