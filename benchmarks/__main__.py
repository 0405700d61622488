"""Measure scenarios: python -m benchmarks [NAME…]."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks import check
from benchmarks.measuring import Settings
from benchmarks.processes import ROOT
from benchmarks.results import Result, as_json, compare
from benchmarks.scenarios import SCENARIOS, measure


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure scenarios. Times are ratios within the run.",
        epilog=f"Scenarios: {', '.join(SCENARIOS)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="Scenarios. Default: all.")
    parser.add_argument("--quick", action="store_true", help="Smaller workloads, fewer rounds.")
    parser.add_argument("--rounds", type=int, help="Rounds to take the minimum of. Default: 5.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the results to a file.")
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="Print the changes since earlier results. Exit with 1 if calls or modules differ.",
    )
    parser.add_argument(
        "--checkout", type=Path, default=ROOT, help="Measure the program of another checkout."
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Compare calls and modules with benchmarks/expected.json, and print quick ratios.",
    )
    parser.add_argument(
        "--update", action="store_true", help="Write calls and modules to expected.json."
    )
    parser.add_argument(
        "--terraform-provider",
        type=Path,
        metavar="FILE",
        default=os.environ.get("BENCHMARKS_TERRAFORM_PROVIDER"),
        help="The built provider of PostHog for Terraform. Default: that variable; else skipped.",
    )
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("BENCHMARKS_PEERS"),
        help="A virtual environment with octodns and dbt-jobs-as-code. Default: that variable.",
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in SCENARIOS]
    if unknown:
        parser.error(f"unknown scenarios: {', '.join(unknown)}")
    return arguments


def main() -> int:
    """Measure, print and compare. Return the exit code."""
    arguments = _arguments()
    if arguments.check or arguments.update:
        return check.main(update=arguments.update)
    settings = Settings(
        rounds=arguments.rounds or (2 if arguments.quick else 5),
        quick=arguments.quick,
        checkout=arguments.checkout.resolve(),
        terraform_provider=arguments.terraform_provider,
        peers=arguments.peers,
    )
    results: dict[str, Result] = {}
    # The peak memory of this process counts for its children: scenarios that use much come last.
    for name in (name for name in SCENARIOS if name in (arguments.names or SCENARIOS)):
        results[name] = measure(name, settings)
        print("\n".join(results[name].text()), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(results), indent=1) + "\n", encoding="utf-8")
    if not arguments.compare:
        return 0
    before = json.loads(arguments.compare.read_bytes())
    lines, differs = compare(before["results"], results)
    print("\n".join([f"Since {before['date']}:", *(f"  {line}" for line in lines)]))
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
