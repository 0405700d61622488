"""JSON Schema: which values a field takes."""
