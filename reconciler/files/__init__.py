"""YAML files to the desired state."""
