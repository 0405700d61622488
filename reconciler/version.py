"""The version and the repository, which packaging reads without importing anything else."""

__version__ = "0.1.0"
REPOSITORY = "https://example.com/OWNER/reconciler"
"""The address of the repository, a placeholder until there is one: a release refuses OWNER."""
