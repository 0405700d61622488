"""Turns the API into values. Comes after the configuration and before the planner."""

from reconciler.reading.live import Depth, read_live

__all__ = ["Depth", "read_live"]
