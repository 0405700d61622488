"""YAML that people keep: formatted, extended and written without losing a comment."""
