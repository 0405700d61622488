"""`init`: create a workspace."""
