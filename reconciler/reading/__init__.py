"""Read live state through the API, completely or not at all."""

from reconciler.reading.details import read_details
from reconciler.reading.live import Depth, read_live
from reconciler.reading.objects import list_scope, read_object
from reconciler.reading.typed import live_object

__all__ = ["Depth", "list_scope", "live_object", "read_details", "read_live", "read_object"]
