"""Checks that a JSON Schema cannot express."""
