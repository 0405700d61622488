"""GitOps for data pipelines: YAML in, a plan, and the calls that carry it out."""

from reconciler.version import __version__

__all__ = ["__version__"]
