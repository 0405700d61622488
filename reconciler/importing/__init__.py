"""Live objects to resources in files."""
