"""HTTP: requests as values in, answers or our exceptions out. No other package uses httpx."""

from reconciler.client.pages import all_pages
from reconciler.client.secrets import SecretResolver
from reconciler.client.transport import ClientSettings, Transport, open_transport

__all__ = ["ClientSettings", "SecretResolver", "Transport", "all_pages", "open_transport"]
