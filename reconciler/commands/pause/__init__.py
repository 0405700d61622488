"""`pause` and `unpause`."""
