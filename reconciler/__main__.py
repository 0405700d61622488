"""`python -m reconciler` is the command line."""

from reconciler.cli import main

main()
