"""Devices that some systems do not have."""

from __future__ import annotations

from pathlib import Path

import pytest

NEEDS_FULL_DISK = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full"
)
