"""`plan`: show what would change."""
