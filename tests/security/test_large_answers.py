"""Large answers need little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.cli import write
from tests.support.limits import time_limit
from tests.support.loopback import serving

MOST_MEGABYTES = 256
MEASURED = """\
import sys
from reconciler.commands import main
from tests.security.memory import peak_megabytes
try:
    main()
finally:
    sys.stderr.write(f"\\n{peak_megabytes()}")
"""
PAGE = '{"count": 1, "next": null, "results": [%s]}'


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, PAGE % ("[]," * 10_000_000 + "1")),
        (200, PAGE % ('{"id": 1, "name": "' + "a" * 2**24 + '"}')),
        (200, PAGE % ('{"id": 1, "name": "a", "b": [' + "1," * 400_000 + "1]}")),
        (400, '{"code": "", "detail": "' + "ü" * 2**23 + '"}'),
        (400, "[" * 2**24),
    ],
    ids=["lists", "long-name", "numbers", "long-error", "nested-error"],
)
def test_security_12_large_answers_need_little_memory(
    tmp_path: Path, status: int, body: str
) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\nclient: {retry_for: 0}\n"})
    with serving(lambda request: request.send(status, body.encode())) as port:
        environ = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "RECONCILER_BASE_URL": f"http://127.0.0.1:{port}",
            "RECONCILER_ORGANIZATION": "org",
            "RECONCILER_API_KEY": "phx_key",
        }
        words = ["plan", "-C", str(tmp_path), "--no-inventory"]
        process = subprocess.Popen(
            [sys.executable, "-c", MEASURED, *words],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        with process, time_limit(process):
            err = process.communicate()[1].decode()
    assert "Traceback" not in err
    assert "this is a bug" not in err
    assert int(err.splitlines()[-1]) < MOST_MEGABYTES, err[-2_000:]
