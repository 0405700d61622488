"""Check the versions of constraints.txt for known vulnerabilities, with pip-audit.

pip-audit is installed into a temporary environment. Exits with 1 if there are vulnerabilities. If
something cannot be checked, for example without a network, the last line says so.
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


def main() -> int:
    """Run pip-audit, print what it reports, and return the exit code."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        file = Path(folder, "report.json")
        tools = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        if not _runs(tools / "pip", "install", "--quiet", "pip-audit"):
            return _say("Audit skipped: cannot install pip-audit.")
        _runs(tools / "pip-audit", "-r", ROOT / "constraints.txt", *_OPTIONS, "-o", file)
        if not file.exists():
            return _say("Audit skipped: pip-audit cannot reach its database.")
        return report(json.loads(file.read_bytes())["dependencies"])


def report(dependencies: list[dict[str, Any]]) -> int:
    """Print the vulnerabilities. pip-audit itself skips what its database does not know."""
    checked = [dependency for dependency in dependencies if "vulns" in dependency]
    matches = [(dependency, vuln) for dependency in checked for vuln in dependency["vulns"]]
    for dependency, vuln in matches:
        fixed = ", ".join(vuln["fix_versions"]) or "no version"
        _say(f"{dependency['name']} {dependency['version']}: {vuln['id']}, fixed in {fixed}")
    if not checked:
        return _say("Audit skipped: the database of pip-audit knows none of the dependencies.")
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


def _say(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
