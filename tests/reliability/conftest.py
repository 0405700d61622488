from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.limits import limited


@pytest.fixture(autouse=True)
def _limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that hangs. Locks of appliers are files of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with limited():
        yield
