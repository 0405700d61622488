"""Format, extend and write YAML files without losing comments."""
