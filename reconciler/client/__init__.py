"""The only place that speaks HTTP: requests as values in, answers or our exceptions out."""

from reconciler.client.pages import all_pages
from reconciler.client.secrets import SecretResolver
from reconciler.client.service import CallCounts, ClientSettings, Service, open_service

__all__ = [
    "CallCounts",
    "ClientSettings",
    "SecretResolver",
    "Service",
    "all_pages",
    "open_service",
]
