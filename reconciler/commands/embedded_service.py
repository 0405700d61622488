"""Run the embedded service as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from reconciler.errors import ReconcilerError
from reconciler.model.text import printable


@contextmanager
def embedded_service(*options: str) -> Iterator[Mapping[str, Any]]:
    """Start the embedded service on a free port, and stop it at the end.

    Yields its base_url, organization, project_id and api_key. Raises ReconcilerError.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "reconciler", "emulator", "--until-stdin-ends", *options],
            # It ends with this process, also if that is killed.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            line = process.stdout.readline() if process.stdout is not None else b""
            if not line:
                process.wait()
                errors.seek(0)
                error = printable(errors.read().decode(errors="replace").strip())
                raise ReconcilerError(
                    f"the embedded service did not start: {error}",
                    hint="install it with: pip install 'posthog-reconciler[emulator]'",
                )
            yield orjson.loads(line)
        finally:
            # It keeps nothing, and a signal leaves little time for a graceful end.
            process.kill()
            process.communicate()
