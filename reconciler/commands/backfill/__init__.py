"""`backfill`: run an export again for a past range."""
