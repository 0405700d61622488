"""Load a workspace (`loading.py`): files, git, references, layers and checks."""
