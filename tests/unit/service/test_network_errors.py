"""Why the service can't be reached, in the message; a hint for answers of a proxy."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from reconciler.model.live import Repeat, Request
from reconciler.service.failures import service_error
from reconciler.service.http import no_response
from tests.support.cli import reconciler, write

URL = "https://eu.example"


def connect_error(cause: Exception) -> httpx.ConnectError:
    """Return an error as httpx raises it: the cause is two levels below."""
    inner = OSError("All connection attempts failed")
    inner.__cause__ = cause
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = inner
    return error


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (socket.gaierror(-2, "Name or service not known"), "the name eu.example can't be resolved"),
        (UnicodeError("label empty or too long"), "the name eu.example can't be resolved"),
        (ConnectionRefusedError(111, "Connection refused"), "connection refused"),
    ],
)
def test_apply_a8_the_reason_of_a_failed_connection_is_shown(cause: Exception, reason: str) -> None:
    error = no_response("GET /x", URL, connect_error(cause))
    assert error.message == f"GET /x: can't connect to {URL}: {reason}"


def test_a_proxy_that_does_not_answer_is_not_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    refused = no_response("GET /x", URL, connect_error(ConnectionRefusedError(111, "refused")))
    through = f"GET /x: can't connect to {URL} through the proxy of the environment"
    assert refused.message == f"{through}: connection refused"
    unknown = no_response("GET /x", URL, connect_error(socket.gaierror(-2, "unknown")))
    assert unknown.message == f"{through}: the name of the proxy can't be resolved"
    monkeypatch.setenv("NO_PROXY", "eu.example")
    direct = no_response("GET /x", URL, connect_error(ConnectionRefusedError(111, "refused")))
    assert direct.message == f"GET /x: can't connect to {URL}: connection refused"


def test_a_lost_connection_is_explained_without_names_of_classes() -> None:
    error = no_response("GET /x", URL, httpx.RemoteProtocolError("illegal status line"))
    assert error.message == (
        f"GET /x: connection to {URL} lost (closed early, or the response is not HTTP)"
    )


@pytest.mark.parametrize("status", [407, 502])
def test_apply_a8_an_answer_of_a_proxy_has_a_hint(status: int) -> None:
    error = service_error(Request("GET", "/x", Repeat.SAFE), status, b"<html>", {})
    assert error.hint is not None
    assert "proxy" in error.hint


def test_apply_a8_an_invalid_variable_is_not_blamed_on_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    environ = {"RECONCILER_BASE_URL": "ftp://x", "RECONCILER_ORGANIZATION": "o"}
    ran = reconciler("plan", "-C", tmp_path, environ=environ)
    assert ran.err.startswith("error: invalid RECONCILER_BASE_URL 'ftp://x' [bad-url]\n")
