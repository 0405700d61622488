"""What stands in place of a secret."""

MASK = "***"
