"""Services in simulated time, for the commands of operations."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.simulated import Begin, start_simulated


@pytest.fixture
def begin(service_of: StartService, tmp_path: Path) -> Begin:
    """Return a function of a dialect and a moment that starts a service there."""
    return partial(start_simulated, service_of, tmp_path)
