"""Check values by JSON Schema."""
