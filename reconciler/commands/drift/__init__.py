"""`drift`: what changed in live state, and its values into the files."""
