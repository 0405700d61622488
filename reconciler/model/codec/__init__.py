"""The public JSON of plans and audit logs: typed forms, from which the schemas are generated."""
