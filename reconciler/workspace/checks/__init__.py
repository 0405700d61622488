"""Checks that a schema cannot express."""
