"""Scripts that run as processes of their own. They import nothing of the other benchmarks."""
