"""Parse strict YAML to values, with the place of every part."""
