"""Read live state through the API, for planning and import."""

from reconciler.reading.live import Depth, read_live

__all__ = ["Depth", "read_live"]
