"""Read a workspace at commits of its git repository, and record the applied commit."""
