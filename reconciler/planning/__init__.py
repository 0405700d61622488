"""Deciding: pure functions from what the files say and what the API says to a `Plan`."""
