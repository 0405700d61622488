"""The values that everything else passes around: frozen, pure, and importing only `errors`."""
