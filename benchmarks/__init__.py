"""Benchmarks of the program as users run it, as ratios within one run: `python -m benchmarks`."""
