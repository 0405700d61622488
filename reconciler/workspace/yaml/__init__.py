"""Strict YAML: text to values with the place of every part."""
