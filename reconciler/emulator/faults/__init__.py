"""Faults on request: failures of networks and servers, and changes by other clients.

`rules` selects the calls. A new fault is a class with `@effect("name")` in another module.
"""
