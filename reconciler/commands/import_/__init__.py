"""`import`: write live objects into files."""
