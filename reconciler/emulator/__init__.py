"""The embedded service: the documented interface on loopback, backed by SQLite.

It shares no code with the rest of the package, so that both are checked against the facts alone.
"""
