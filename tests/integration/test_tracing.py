"""Traces: what a collector on loopback receives, and runs whose collector fails."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

FILES = {
    "reconciler.yaml": "version: 1\n",
    "web.yaml": "projects:\n  web: {name: Web}\n  app: {name: App}\n",
}
TRACE = "0af7651916cd43dd8448eb211c80319c"
JOB = "b7ad6b7169203331"
ERROR = 2


@dataclass
class Collector:
    """A collector, what it received, and the status that it answers."""

    url: str = ""
    status: int = 200
    received: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        """Return all spans."""
        requests = map(ExportTraceServiceRequest.FromString, self.received)
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> list[Span]:
        """Return the spans of a name."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Span:
        """Return the only span of a name."""
        (span,) = self.named(name)
        return span


@pytest.fixture
def collector() -> Iterator[Collector]:
    state = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.received.append(self.rfile.read(int(self.headers["Content-Length"])))
            state.headers.append({"path": self.path, **dict(self.headers)})
            self.send_response(state.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with _serving(Handler) as port:
        state.url = f"http://127.0.0.1:{port}"
        yield state


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(TIMEOUT)


def traced(emulator: RunningEmulator, url: str, *words: str | Path, **variables: str) -> Ran:
    """Run a command whose traces go to an address."""
    collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": str(TIMEOUT)}
    return reconciler(*words, environ={**emulator.environ(), **collector, **variables})


def attributes(span: Span) -> dict[str, Any]:
    """Return the attributes of a span as texts and numbers."""
    values = {item.key: item.value for item in span.attributes}
    return {name: getattr(value, value.WhichOneof("value")) for name, value in values.items()}


def test_an_apply_is_a_trace_with_changes_and_requests(
    emulator: RunningEmulator, collector: Collector, tmp_path: Path
) -> None:
    ended = traced(
        emulator,
        collector.url,
        *("apply", "-C", write(tmp_path, FILES), "--auto-approve"),
        OTEL_SERVICE_NAME="deployments",
        OTEL_RESOURCE_ATTRIBUTES="team=data",
        OTEL_EXPORTER_OTLP_HEADERS="x-token=collector-key",
        TRACEPARENT=f"00-{TRACE}-{JOB}-01",
    )
    assert (ended.code, "warning" in ended.err) == (0, False), ended.err
    root = collector.one("reconciler apply")
    assert root.trace_id.hex() == TRACE
    assert root.parent_span_id.hex() == JOB
    assert attributes(root) == {"process.exit.code": 0}
    changes = collector.named("create project")
    assert sorted(attributes(span)["reconciler.address"] for span in changes) == [
        "project.app",
        "project.web",
    ]
    assert {span.parent_span_id for span in changes} == {root.span_id}
    posts = collector.named("POST")
    assert {span.parent_span_id for span in posts} == {span.span_id for span in changes}
    assert {attributes(span)["http.response.status_code"] for span in posts} == {201}
    verification = collector.one("verify").span_id
    parents = {span.parent_span_id for span in collector.named("GET")}
    assert {root.span_id, verification} <= parents
    assert all(span.end_time_unix_nano for span in collector.spans)
    about = ExportTraceServiceRequest.FromString(collector.received[0]).resource_spans[0].resource
    named = {item.key: item.value.string_value for item in about.attributes}
    assert (named["service.name"], named["team"]) == ("deployments", "data")
    assert collector.headers[0]["path"] == "/v1/traces"
    assert collector.headers[0]["x-token"] == "collector-key"
    assert emulator.api_key.encode() not in b"".join(collector.received)


def test_a_secret_in_the_path_of_a_request_is_masked(
    emulator: RunningEmulator, collector: Collector, tmp_path: Path
) -> None:
    key = emulator.api_key
    environ = {"RECONCILER_ORGANIZATION": key}
    ended = traced(emulator, collector.url, "plan", "-C", write(tmp_path, FILES), **environ)
    assert ended.code == 1
    assert "organizations" in attributes(collector.named("GET")[0])["url.path"]
    assert key.encode() not in b"".join(collector.received)


def test_a_command_that_fails_is_an_error(
    emulator: RunningEmulator, collector: Collector, tmp_path: Path
) -> None:
    folder = write(tmp_path, FILES)
    wrong = {"RECONCILER_API_KEY": "phx_wrong"}
    assert traced(emulator, collector.url, "plan", "-C", folder, **wrong).code == 1
    root = collector.one("reconciler plan")
    assert (root.status.code, root.status.message) == (ERROR, "error")
    assert attributes(root) == {"process.exit.code": 1}
    request = collector.named("GET")[0]
    assert request.status.code == ERROR
    assert attributes(request)["error.type"] == "401"


@pytest.mark.parametrize("status", [400, None])
def test_a_collector_that_fails_is_one_warning(
    emulator: RunningEmulator, collector: Collector, tmp_path: Path, status: int | None
) -> None:
    folder = write(tmp_path, FILES)
    collector.status = status or 200
    url = collector.url if status else "http://127.0.0.1:9"
    ended = traced(emulator, url, "plan", "-C", folder, OTEL_EXPORTER_OTLP_TIMEOUT="0.2")
    assert ended.code == 0
    assert "Plan: 2 to create" in ended.out
    warnings = [line for line in ended.err.splitlines() if "traces" in line]
    assert warnings == ["warning: traces are incomplete: the collector did not accept all spans"]
    assert logging.getLogger("opentelemetry").handlers == []


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
    ],
)
def test_traces_are_off_without_a_word(
    emulator: RunningEmulator, collector: Collector, tmp_path: Path, variables: dict[str, str]
) -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}
    ended = reconciler(
        "plan", "-C", write(tmp_path, FILES), environ={**emulator.environ(), **environ}
    )
    assert (ended.code, "traces" in ended.err) == (0, False)
    assert collector.received == []


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "unsupported OTEL_EXPORTER_OTLP_PROTOCOL 'grpc'"),
        (
            {"OTEL_BSP_MAX_QUEUE_SIZE": "10"},
            "the OpenTelemetry SDK cannot start: ValueError",
        ),
    ],
)
def test_variables_that_cannot_be_used_are_one_warning(
    emulator: RunningEmulator,
    collector: Collector,
    tmp_path: Path,
    variables: dict[str, str],
    reason: str,
) -> None:
    folder = write(tmp_path, FILES)
    ended = traced(emulator, collector.url, "plan", "-C", folder, **variables)
    assert ended.code == 0
    assert ended.err.count(f"warning: no traces: {reason}") == 1
    assert collector.received == []


def test_a_missing_extra_is_one_warning(
    emulator: RunningEmulator,
    collector: Collector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Python refuses to import a module that is None.
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    ended = traced(emulator, collector.url, "plan", "-C", write(tmp_path, FILES))
    assert ended.code == 0
    expected = (
        "warning: no traces: the OpenTelemetry SDK is not installed (install the extra `otel`)"
    )
    assert ended.err.count(expected) == 1


def test_the_sdk_is_not_imported_without_the_variables() -> None:
    script = (
        "import sys\n"
        "from reconciler.cli.running import progress\n"
        "from reconciler.cli.tracing import traced\n"
        "with traced('plan'):\n"
        "    assert progress().forward is None\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=TIMEOUT, env={})
