"""Make the picture of README.md, a terminal as SVG, from a real run on the embedded service."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.commands.demo import embedded_service  # noqa: E402

PICTURES = ROOT / "docs/_static"
TERMINAL = PICTURES / "plan.svg"

_WIDTH = 96
_CELL, _LINE, _MARGIN = 8, 19, 18
_SECRET = re.compile(r"\$\{secret:env:(\w+)\}")
_SEED = {
    "organizations": [{"id": "4dc8564d-bd82-1065-2f40-97f7c50f67cf", "name": "Acme"}],
    "keys": [{"value": "phx_pictures", "scopes": ["*"]}],
}
_OUTCOMES = [
    {"match": {"name": "Web persons to S3", "nth": 2}, "status": "Failed", "error": "Denied"},
    {"match": {}, "status": "Completed", "records": 36_900, "seconds": 21},
]
_ADDED = """
  app-persons-s3:
    project: app
    name: App persons to S3
    model: persons
    interval: day
    destination:
      type: S3
      config:
        bucket_name: ${var:bucket}
        region: eu-central-1
        prefix: app/persons/
        aws_access_key_id: ${secret:env:ACME_AWS_ACCESS_KEY_ID}
        aws_secret_access_key: ${secret:env:ACME_AWS_SECRET_ACCESS_KEY}
"""
_FIXED = {
    # The port, the commits, and the ids of live objects with what depends on them differ.
    r"(127\.0\.0\.1(?::|&#58;))\d+": r"\g<1>8010",
    r"(main(?:@|&#64;&#8203;))[0-9a-f]{7}\b": r"\g<1>1a2b3c4",
    r"(Applied +)[0-9a-f]{7}\b": r"\g<1>1a2b3c4",
    r"(daily(?:@|&#64;&#8203;))[0-9a-f]{7}\b": r"\g<1>9f8e7d6",
    r"\bplan [0-9a-f]{8}\b": "plan 3c9a41f0",
}
_COLOURS = {"31": "#ff8f87", "32": "#57d364", "33": "#e3b341", "35": "#d2a8ff", "36": "#76d9e6"}
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@contextmanager
def scenario() -> Iterator[Callable[..., str]]:
    """Yield a function of options: it plans the edits of a branch of examples/acme."""
    with tempfile.TemporaryDirectory() as folder:
        seed = Path(folder) / "seed.json"
        seed.write_text(json.dumps(_SEED), encoding="utf-8")
        workspace = Path(folder) / "acme"
        shutil.copytree(ROOT / "examples/acme", workspace)
        with embedded_service("--seed", str(seed)) as service:
            address = str(service["base_url"])
            environ = _environ(workspace, address)
            run = _runner(workspace, environ)
            with httpx.Client(base_url=f"{address}/_emulator", trust_env=False) as switchboard:
                switchboard.put("/outcomes", json=_OUTCOMES).raise_for_status()
                switchboard.post("/clock", json={"set": "2026-11-14T12:00:00Z"}).raise_for_status()
                run("git", "init", "--quiet", "-b", "main")
                run("git", "add", ".")
                run("git", "commit", "--quiet", "-m", "Add the workspace")
                run("reconciler", "apply", "--trust-workspace", "--auto-approve")
                switchboard.post("/clock", json={"set": "2026-11-20T12:00:00Z"}).raise_for_status()
            run("git", "checkout", "--quiet", "-b", "daily")
            _edit(workspace)
            run("git", "commit", "--quiet", "-a", "-m", "Export once a day")
            plan = ("reconciler", "plan", "--trust-workspace")
            yield lambda *options: _fixed(run(*plan, *options))


def terminal(text: str) -> str:
    """Return SVG of a dark terminal, which is readable on a light and on a dark page."""
    lines = text.rstrip("\n").split("\n")
    width, height = _WIDTH * _CELL + 2 * _MARGIN, len(lines) * _LINE + 2 * _MARGIN
    drawn = "\n".join(
        f'<text x="{_MARGIN}" y="{_MARGIN + 14 + number * _LINE}">{_spans(line)}</text>'
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="{_FONT}" font-size="13.3" '
        f'fill="#d1d7e0">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#151b23"/>\n{drawn}\n</svg>\n'
    )


def command_and_plan(plan: Callable[..., str]) -> str:
    """Return the text of the picture of a terminal."""
    return f"\x1b[2m$\x1b[0m \x1b[1mreconciler plan\x1b[0m\n{plan()}"


def _spans(line: str) -> str:
    # Renderers differ in whether xml:space keeps spaces.
    parts = re.split(r"\x1b\[([\d;]*)m", line.replace(" ", "\u00a0"))
    spans = [escape(parts[0], quote=False)]
    for codes, text in zip(parts[1::2], parts[2::2], strict=True):
        look = "".join(_look(code) for code in codes.split(";"))
        written = escape(text, quote=False)
        spans.append(f"<tspan{look}>{written}</tspan>" if look and text else written)
    return "".join(spans)


def _look(code: str) -> str:
    if code == "1":
        return ' font-weight="700"'
    if code == "2":
        return ' fill="#9198a1"'
    return f' fill="{_COLOURS[code]}"' if code in _COLOURS else ""


def _environ(workspace: Path, address: str) -> dict[str, str]:
    """Return the environment of all commands: nothing of this machine but its programs."""
    now = datetime.now(UTC)  # noqa: TID251 - the plan shows the age of the base
    time = (now - timedelta(hours=2, minutes=5)).isoformat()
    people = {
        f"GIT_{who}_{name}": value
        for who in ("AUTHOR", "COMMITTER")
        for name, value in (("NAME", "Ada"), ("EMAIL", "ada@acme.example"), ("DATE", time))
    }
    files = workspace.rglob("*.yaml")
    secrets = {name for file in files for name in _SECRET.findall(file.read_text("utf-8"))}
    return {
        **{name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
        **people,
        **dict.fromkeys(secrets, "picture"),
        "HOME": str(workspace.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(_WIDTH),
        "FORCE_COLOR": "1",
        "ACME_STAGING_URL": address,
        "ACME_STAGING_ORGANIZATION": _SEED["organizations"][0]["id"],
        "ACME_STAGING_API_KEY": _SEED["keys"][0]["value"],
    }


def _runner(workspace: Path, environ: Mapping[str, str]) -> Callable[..., str]:
    def run(program: str, *words: str) -> str:
        command = [program] if program == "git" else [sys.executable, "-m", program]
        return subprocess.run(  # noqa: S603 - this program and git
            [*command, *words],
            cwd=workspace,
            env=environ,
            check=True,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        ).stdout

    return run


def _edit(workspace: Path) -> None:
    """Export once a day, move one prefix, add one export and remove another."""
    _replace(workspace / "reconciler.yaml", "interval: hour", "interval: day")
    lake = workspace / "exports/lake.yaml"
    _replace(lake, "prefix: web/persons/", "prefix: web/people/")
    lake.write_text(lake.read_text("utf-8") + _ADDED, encoding="utf-8")
    operations = workspace / "exports/operations.yaml"
    kept, _, _ = operations.read_text("utf-8").partition("\n  internal-dry-run:")
    operations.write_text(kept, encoding="utf-8")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    if old not in text:
        raise SystemExit(f"{file.name} no longer contains {old!r}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def _fixed(text: str) -> str:
    for pattern, replacement in _FIXED.items():
        text = re.sub(pattern, replacement, text)
    return text


def main() -> None:
    """Write the picture."""
    with scenario() as plan:
        TERMINAL.write_text(terminal(command_and_plan(plan)), encoding="utf-8")


if __name__ == "__main__":
    main()
