"""Spans of a command for OpenTelemetry: one for the command, each change and each request.

The SDK is the extra `otel`. It is imported only if the standard variables name a collector.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from reconciler.errors import ExitCode, ReconcilerError
from reconciler.model.change import Change
from reconciler.model.event import (
    Done,
    Ended,
    Event,
    Failed,
    Sending,
    Sent,
    Started,
    Verifying,
    Waiting,
    Withdrawn,
)
from reconciler.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_TIMEOUT = 3.0
"""Seconds for one export. The 10 of the SDK would delay the end of every command that much."""
_LOGGER = "opentelemetry"

_Call: TypeAlias = tuple[str, str, int, str | None]


def open_trace(command: str, environ: Mapping[str, str]) -> Trace:
    """Return a listener that exports the spans of a command. Raises ReconcilerError."""
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), _PROTOCOL)
    if protocol != _PROTOCOL:
        raise ReconcilerError(
            f"unsupported OTEL_EXPORTER_OTLP_PROTOCOL '{protocol}'", hint=f"set {_PROTOCOL}"
        )
    log = _ExporterLog()
    try:
        provider = _provider(environ)
        return Trace(command, provider, log, parent=_parent(environ))
    except ImportError:
        log.close()
        raise ReconcilerError(
            "the OpenTelemetry SDK is not installed", hint="install the extra `otel`"
        ) from None
    except Exception as error:  # noqa: BLE001 - the SDK raises many kinds for wrong variables
        log.close()
        raise ReconcilerError(
            f"the OpenTelemetry SDK cannot start: {type(error).__name__}",
            hint="check the variables that start with OTEL_",
        ) from None


def _provider(environ: Mapping[str, str]) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    timeout = None if any(environ.get(name) for name in _TIMEOUTS) else _TIMEOUT
    named = Resource.create({"service.name": "reconciler", "service.version": __version__})
    # The variables have precedence, so they are merged again.
    resource = named.merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=timeout)))
    return provider


def _parent(environ: Mapping[str, str]) -> Context:
    """Return the context of a CI job that started this process, empty without one."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    names = ("traceparent", "tracestate")
    carrier = {name: environ[name.upper()] for name in names if environ.get(name.upper())}
    return TraceContextTextMapPropagator().extract(carrier)


class _ExporterLog(logging.Handler):
    """Counts what the SDK logs as an error, in place of its lines on stderr."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.failures = 0
        self._logger = logging.getLogger(_LOGGER)
        self._propagates = self._logger.propagate
        self._logger.propagate = False
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Count an error, or a span that was dropped. A failure that is retried is a warning."""
        if record.levelno >= logging.ERROR or "dropping" in record.getMessage().lower():
            self.failures += 1

    def close(self) -> None:
        """Let the SDK log as before."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagates
        super().close()


@dataclass(slots=True)
class Trace:
    """A listener that makes the spans. Events are masked already."""

    command: str
    provider: TracerProvider
    log: _ExporterLog
    parent: Context
    _tracer: Tracer = field(init=False)
    _root: Span = field(init=False)
    _verification: Span | None = None
    _changes: dict[str, Span] = field(default_factory=dict)
    _calls: dict[_Call, list[Span]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tracer = self.provider.get_tracer("reconciler", __version__)
        name = f"reconciler {self.command}"
        self._root = self._tracer.start_span(name, context=self.parent)

    def __call__(self, event: Event) -> None:
        """Start, end or annotate a span."""
        match event:
            case Started(change):
                self._changes[change.id] = self._child(
                    f"{change.action} {change.address.kind}", _about(change)
                )
            case Done(change, live_id=live_id):
                self._end(change, None, {"reconciler.live_id": live_id or ""})
            case Withdrawn(change):
                self._end(change, None, {"reconciler.withdrawn": True})
            case Failed(change):
                self._end(change, event.error, {"reconciler.outcome_unknown": event.unknown})
            case Sending():
                self._begin_call(event)
            case Sent():
                self._end_call(event)
            case Waiting(seconds, reason, change_id):
                waited: dict[str, str | float] = {
                    "reconciler.seconds": seconds,
                    "reconciler.reason": reason,
                }
                self._span_of(change_id).add_event("wait", waited)
            case Verifying():
                self._verification = self._child("verify", {})
            case Ended() if self._verification is not None:
                self._verification.end()
                self._verification = None

    def close(self, exit_code: int) -> str | None:
        """End the open spans and export all. Return what was lost, None if nothing was."""
        unfinished = [span for spans in self._calls.values() for span in spans]
        for span in (*unfinished, *self._changes.values(), self._verification):
            if span is not None:
                span.end()
        self._root.set_attribute("process.exit.code", exit_code)
        if exit_code not in (ExitCode.FINE, ExitCode.CHANGES):
            self._set_error(self._root, ExitCode(exit_code).name.lower())
        self._root.end()
        self.provider.shutdown()
        self.log.close()
        if not self.log.failures:
            return None
        return "traces are incomplete: the collector did not accept all spans"

    def _child(self, name: str, attributes: Mapping[str, str]) -> Span:
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(self._root)
        return self._tracer.start_span(name, context=context, attributes=attributes)

    def _span_of(self, change_id: str | None) -> Span:
        """Return the span of a change, or of the phase of the command outside of changes."""
        span = self._changes.get(change_id) if change_id is not None else None
        return span or self._verification or self._root

    def _end(self, change: Change, error: str | None, attributes: Mapping[str, str | bool]) -> None:
        """End the span of a change. A change that fails before its first request has none."""
        span = self._changes.pop(change.id, None)
        if span is None:
            return
        span.set_attributes(attributes)
        if error is not None:
            self._set_error(span, error)
        span.end()

    def _begin_call(self, event: Sending) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context

        attributes: dict[str, str | int] = {
            "http.request.method": event.method,
            "url.path": event.path.partition("?")[0],
        }
        if event.attempt > 1:
            attributes["http.request.resend_count"] = event.attempt - 1
        span = self._tracer.start_span(
            event.method,
            context=set_span_in_context(self._span_of(event.change_id)),
            kind=SpanKind.CLIENT,
            attributes=attributes,
        )
        self._calls.setdefault(_key(event), []).append(span)

    def _end_call(self, event: Sent) -> None:
        spans = self._calls.get(_key(event))
        if not spans:
            return
        span = spans.pop(0)
        if event.status is not None:
            span.set_attribute("http.response.status_code", event.status)
        if event.error is not None or (event.status or 0) >= 400:
            span.set_attribute("error.type", str(event.status or "no_response"))
            self._set_error(span, event.error or f"status {event.status}")
        span.end()

    @staticmethod
    def _set_error(span: Span, description: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_status(Status(StatusCode.ERROR, description))


def _key(event: Sending | Sent) -> _Call:
    return event.method, event.path, event.attempt, event.change_id


def _about(change: Change) -> dict[str, str]:
    return {
        "reconciler.change.id": change.id,
        "reconciler.address": str(change.address),
        "reconciler.action": str(change.action),
        "reconciler.severity": str(change.severity or "none"),
    }
