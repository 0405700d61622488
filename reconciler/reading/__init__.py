"""Read live state through the API, completely or not at all."""

from reconciler.reading.live import (
    Depth,
    list_scope,
    live_object,
    read_details,
    read_live,
    read_object,
)

__all__ = [
    "Depth",
    "list_scope",
    "live_object",
    "read_details",
    "read_live",
    "read_object",
]
