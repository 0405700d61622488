from __future__ import annotations

import gc
import json
import signal
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.cli import SIGNALS
from tests.support.emulator import RunningEmulator, start_emulator
from tests.support.limits import LONG

_SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile(
    "short",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "long", deadline=None, max_examples=1000, print_blob=True, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile("long" if LONG else "short")

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure() -> None:
    """Let signals end the commands of tests, also where this run ignores them.

    A shell ignores SIGINT in the background, and nohup SIGHUP. Processes inherit that, but no
    function that does nothing.
    """
    # A third of the time of a collection is a search for garbage, and there is none.
    gc.disable()
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected texts, for review"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a file; with --update-golden, rewrite the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and review it"
        assert text == path.read_text(encoding="utf-8")

    return compare


StartService = Callable[..., RunningEmulator]
_MOST_SERVICES = 10
"""The most services that run for the tests of a worker. Each has about 40 MB."""


@pytest.fixture(scope="session")
def service_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartService]:
    """Return a function of a seed and options: it starts a service once, and resets it.

    The services that were used last keep running, because a start takes longer than most tests.
    """
    running: OrderedDict[str, tuple[ExitStack, RunningEmulator]] = OrderedDict()

    def start(seed: Mapping[str, Any] | None = None, *options: str) -> RunningEmulator:
        text = json.dumps(seed)
        key = f"{text} {options}"
        if key in running:
            running.move_to_end(key)
            running[key][1].reset()
            return running[key][1]
        if len(running) == _MOST_SERVICES:
            running.popitem(last=False)[1][0].close()
        file = None
        if seed is not None:
            file = tmp_path_factory.mktemp("seed") / "seed.json"
            file.write_text(text, encoding="utf-8")
        stack = ExitStack()
        service = stack.enter_context(start_emulator(seed=file, extra=options))
        running[key] = (stack, service)
        return service

    yield start
    for stack, _ in running.values():
        stack.close()


@pytest.fixture
def emulator(service_of: StartService) -> RunningEmulator:
    """Return the service without a seed, as it is when new."""
    return service_of()
