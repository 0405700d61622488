"""HTTP: requests as values in, answers or our exceptions out. No other package uses httpx."""

from reconciler.client.exchange import SecretResolver
from reconciler.client.limits import ClientSettings
from reconciler.client.pages import complete_list
from reconciler.client.transport import Transport, open_transport
from reconciler.client.waits import Stop, together

__all__ = [
    "ClientSettings",
    "SecretResolver",
    "Stop",
    "Transport",
    "complete_list",
    "open_transport",
    "together",
]
