"""Check the versions of constraints.txt for known vulnerabilities, with pip-audit.

pip-audit is installed into a temporary environment. Exits with 1 if there are vulnerabilities. If
nothing can be checked, for example without a network, the last line says so, and with --required
the exit code is 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_OPTIONS = ("--no-deps", "--disable-pip", "--progress-spinner=off", "--timeout=15", "--format=json")
_SECONDS = 300


def main(*, required: bool) -> int:
    """Run pip-audit, print what it reports, and return the exit code."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        file = Path(folder, "report.json")
        tools = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        if not _runs(tools / "pip", "install", "--quiet", "pip-audit"):
            return _skipped("cannot install pip-audit", required=required)
        _runs(tools / "pip-audit", "-r", ROOT / "constraints.txt", *_OPTIONS, "-o", file)
        if not file.exists():
            return _skipped("pip-audit cannot reach its database", required=required)
        dependencies = json.loads(file.read_bytes())["dependencies"]
        return report(dependencies, required=required)


def report(dependencies: list[dict[str, Any]], *, required: bool) -> int:
    """Print the vulnerabilities. pip-audit itself skips what its database does not know."""
    checked = [dependency for dependency in dependencies if "vulns" in dependency]
    matches = [(dependency, vuln) for dependency in checked for vuln in dependency["vulns"]]
    for dependency, vuln in matches:
        fixed = ", ".join(vuln["fix_versions"]) or "no version"
        _say(f"{dependency['name']} {dependency['version']}: {vuln['id']}, fixed in {fixed}")
    if not checked:
        reason = "the database of pip-audit knows none of the dependencies"
        return _skipped(reason, required=required)
    number = f"{len(checked)} of {len(dependencies)} dependencies checked"
    _say(f"Audit: {number}, known vulnerabilities: {len(matches)}.")
    return 1 if matches else 0


def _runs(*words: str | Path) -> bool:
    """Run a command quietly, and return whether it succeeds in time."""
    try:
        ended = subprocess.run(  # noqa: S603 - words of this file, no shell
            list(map(str, words)), capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def _skipped(reason: str, *, required: bool) -> int:
    _say(f"Audit skipped: {reason}.")
    return 1 if required else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(required=sys.argv[1:] == ["--required"]))
