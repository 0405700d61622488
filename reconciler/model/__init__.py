"""The values that everything else passes around: frozen, pure, importing only what is below."""
