"""How requests are made: options of the command over the environment over the workspace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reconciler.commands.session import connected, open_session
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.model.settings import ClientOptions, Window, duration, rate
from reconciler.service.pace import ClientSettings
from tests.support.cli import reconciler

WORKSPACE = """\
version: 1
client: {parallelism: 2, rate: 240/60, timeout: 5, max_wait: 1h}
environments:
  staging:
    client: {rate: 120/1m, retry_for: 90s, timeout: 1.5}
  production:
    client: {rate: false}
"""
ENVIRON = {
    "RECONCILER_BASE_URL": "https://service.example",
    "RECONCILER_ORGANIZATION": "org",
    "RECONCILER_API_KEY": "phx_key",
}


def settings(folder: Path, environment: str, flags: ClientOptions | None = None) -> ClientSettings:
    """Return the settings of the connection to an environment."""
    (folder / "reconciler.yaml").write_text(WORKSPACE)
    workspace = Workspace(
        folder, environment, client=flags or ClientOptions(), runtime=Runtime(ENVIRON)
    )

    async def connect() -> ClientSettings:
        session = open_session(workspace)
        async with connected(session) as transport:
            return transport.settings

    return asyncio.run(connect())


@pytest.mark.parametrize(
    ("environment", "flags", "expected"),
    [
        ("staging", None, (2, (Window(120, 60.0),), 1.5, 3_600.0, 90.0)),
        ("production", None, (2, (), 5.0, 3_600.0, 300.0)),
        ("staging", ClientOptions(rate=(Window(9, 1.0),)), (2, (Window(9, 1.0),), 1.5, 3600.0, 90)),
    ],
    ids=["the environment over the workspace", "no rate", "options over files"],
)
def test_what_takes_precedence(
    tmp_path: Path, environment: str, flags: ClientOptions | None, expected: tuple[object, ...]
) -> None:
    used = settings(tmp_path, environment, flags)
    given = (used.parallelism, used.rate, used.timeout, used.max_wait, used.retry_for)
    assert given == expected


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        *(("timeout", text, 30.0) for text in ("30", "30s")),
        *(("timeout", "0.5s", 0.5), ("timeout", "5m", 300.0), ("timeout", "1h", 3_600.0)),
        *(("timeout", text, None) for text in ("0", "5 m", "-5", "1d", "1e3", "", "٣")),
        *(("max_wait", "0", 0.0), ("retry_for", "0s", 0.0)),
    ],
)
def test_times_are_seconds_or_have_a_unit(name: str, text: str, seconds: float | None) -> None:
    assert duration(name, text) == seconds


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("48/6", (Window(48, 6.0),)),
        ("480/1m", (Window(480, 60.0),)),
        ("1/0.5", (Window(1, 0.5),)),
        ("off", ()),
        *((text, None) for text in ("0/60", "60/0", "60", "a/b", "1/2/3", "")),
    ],
)
def test_a_rate_is_calls_and_seconds(text: str, windows: tuple[Window, ...] | None) -> None:
    assert rate(text) == windows


def test_an_invalid_rate_is_a_usage_error() -> None:
    refused = reconciler("plan", "--rate=fast")
    assert refused.code == 64
    assert "invalid --rate 'fast'" in refused.err
