"""GitOps for data pipelines: YAML in, a plan, and the calls that carry it out.

The use cases of the commands are the Python API (docs/api.md). They are imported when one is
named, since every import of a module of the package runs this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciler.version import __version__ as __version__

if TYPE_CHECKING:
    from reconciler.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a function or a class of the API. Raises AttributeError for another name."""
    from importlib import import_module

    api = import_module("reconciler.api") if not name.startswith("_") else None
    if not hasattr(api, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)
