"""`python -m reconciler` is the command line."""

from reconciler.commands import main

main()
