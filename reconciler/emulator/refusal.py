"""The service's error answers: one error for each request, in one form (service.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.responses import JSONResponse


@dataclass(frozen=True)
class Refusal(Exception):
    """An answer that is not a success. `code` and `attr` are the service's words."""

    status: int
    type: str
    code: str
    detail: str
    attr: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> JSONResponse:
        """Return the HTTP response."""
        body = {"type": self.type, "code": self.code, "detail": self.detail, "attr": self.attr}
        return JSONResponse(body, status_code=self.status, headers=self.headers)


def invalid(attr: str | None, detail: str, code: str = "invalid_input") -> Refusal:
    """Return the 400 of a field, of no field if `attr` is None."""
    return Refusal(400, "validation_error", code, detail, attr)


def not_authenticated() -> Refusal:
    """Return the 401 of a request without a usable header."""
    detail = "Authentication credentials were not provided."
    return Refusal(401, "authentication_error", "not_authenticated", detail)


def unknown_key() -> Refusal:
    """Return the 401 of an unknown key."""
    detail = "Personal API key found in request Authorization header is invalid."
    return Refusal(401, "authentication_error", "authentication_failed", detail)


def forbidden(detail: str) -> Refusal:
    """Return the 403 of a missing scope, role or flag, or of a limit of the key."""
    return Refusal(403, "authentication_error", "permission_denied", detail)


def not_found(detail: str = "Not found.") -> Refusal:
    """Return the 404 of an object or a path."""
    return Refusal(404, "invalid_request", "not_found", detail)


def method_not_allowed(method: str) -> Refusal:
    """Return the 405 of a method."""
    detail = f'Method "{method}" not allowed.'
    return Refusal(405, "invalid_request", "method_not_allowed", detail)


def wrong_media_type(media_type: str) -> Refusal:
    """Return the 415 of a body with another media type."""
    detail = f'Unsupported media type "{media_type}" in request.'
    return Refusal(415, "invalid_request", "unsupported_media_type", detail)


def server_error() -> Refusal:
    """Return the 500 of a server that crashes."""
    return Refusal(500, "server_error", "error", "A server error occurred.")
