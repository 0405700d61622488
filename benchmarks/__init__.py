"""Benchmarks of the program as users run it: `python -m benchmarks`."""
