from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LONG

LIMIT = 3_600 if LONG else 120
"""Seconds until a test that does not end fails."""


@pytest.fixture(autouse=True)
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that hangs. Locks of appliers are files of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fail(*_: object) -> None:
        pytest.fail(f"the test did not end within {LIMIT} seconds")

    former = signal.signal(signal.SIGALRM, fail)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)
