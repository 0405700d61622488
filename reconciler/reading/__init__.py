"""Turns the API into values. Comes after the configuration and before the planner."""

from reconciler.reading.live import read_live

__all__ = ["read_live"]
