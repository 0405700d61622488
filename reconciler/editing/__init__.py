"""Change YAML files as text."""
