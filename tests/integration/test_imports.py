"""Test the modules that commands import: most of the time of a short command is importing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

NETWORK = ("asyncio", "httpx", "ssl", "reconciler.service")
READING = ("yaml", "jsonschema_rs", "reconciler.files.loading", "reconciler.files.yaml_loader")
USE_CASES = (
    "reconciler.applying",
    "reconciler.planning",
    "reconciler.commands.session",
    "reconciler.commands.apply.changes",
)
PLANS = (
    "reconciler.model.decoding",
    "reconciler.model.plan",
    "reconciler.render.plan_document",
    "reconciler.render.plan_text",
)

SCRIPT = """\
import sys
from reconciler.commands import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported(words: Sequence[str], environ: Mapping[str, str] | None = None) -> set[str]:
    """Return all modules that a command imports, run in the example."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        cwd=ROOT / "examples" / "acme",
        env={"PATH": os.environ["PATH"], **(environ or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.splitlines()[-1].split())


def below(names: set[str], packages: Sequence[str]) -> list[str]:
    return sorted(
        name
        for name in names
        if any(name == package or name.startswith(f"{package}.") for package in packages)
    )


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (
            ["--version"],
            (*NETWORK, *READING, *USE_CASES, *PLANS, "reconciler.commands.options", "msgspec"),
        ),
        (
            ["--help"],
            (*NETWORK, *READING, *USE_CASES, *PLANS, "reconciler.commands.options", "msgspec"),
        ),
        (["validate", "--help"], (*NETWORK, *READING, *USE_CASES, PLANS[0])),
        (["plan", "--help"], (*NETWORK, *READING, *USE_CASES, PLANS[0])),
        (["apply", "--help"], (*NETWORK, *READING, *USE_CASES, PLANS[0])),
        *(
            ([name, "--help"], (*NETWORK, *USE_CASES))
            for name in ("status", "runs", "logs", "gaps", "pause", "unpause", "projects")
        ),
        (["validate"], (*NETWORK, *USE_CASES, *PLANS)),
    ],
    ids=" ".join,
)
def test_a_command_imports_nothing_that_it_does_not_need(
    words: list[str], unneeded: Sequence[str]
) -> None:
    assert below(imported(words), unneeded) == []


def test_completion_imports_no_use_case() -> None:
    environ = {
        "_RECONCILER_COMPLETE": "bash_complete",
        "COMP_WORDS": "reconciler plan --target batch",
        "COMP_CWORD": "3",
    }
    assert below(imported([], environ), (*NETWORK, *USE_CASES, *PLANS, "jsonschema_rs")) == []
