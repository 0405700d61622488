from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.emulator import RunningEmulator, start_emulator

LONG = os.environ.get("LONG_TESTS") == "1"
"""Whether this is the long run (`scripts/test --long`): more and random examples."""
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected texts; review them"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a file, or rewrites the file with --update-golden."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and review it"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture(scope="session")
def shared_emulator() -> Iterator[RunningEmulator]:
    with start_emulator() as running:
        yield running


@pytest.fixture
def emulator(shared_emulator: RunningEmulator) -> RunningEmulator:
    """A service as it is when new."""
    shared_emulator.reset()
    return shared_emulator
