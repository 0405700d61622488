"""HTTP: requests as values in, answers or our exceptions out. No other package uses httpx."""

from reconciler.client.admission import Permit
from reconciler.client.pages import complete_list
from reconciler.client.secrets import SecretResolver
from reconciler.client.settings import ClientSettings
from reconciler.client.stop import Stop
from reconciler.client.tasks import together
from reconciler.client.transport import Transport, open_transport

__all__ = [
    "ClientSettings",
    "Permit",
    "SecretResolver",
    "Stop",
    "Transport",
    "complete_list",
    "open_transport",
    "together",
]
