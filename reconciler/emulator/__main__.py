"""`python -m reconciler.emulator`: the same as the command `reconciler emulator`."""

from reconciler.emulator.server import main

main()
