"""Values to text: plans, diagnostics, resolved resources, imports, progress. Pure."""
