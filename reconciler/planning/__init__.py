"""Decide what to change, from the configuration and live state. Pure: no I/O, no clock."""
