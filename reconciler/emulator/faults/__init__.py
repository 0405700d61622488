"""Faults on request: what networks, servers and other people do to a client.

`rules` decides which call a fault happens to; the other modules hold the effects, a class each,
registered under the name that a rule uses. A new fault is a class with `@effect("name")`.
"""
