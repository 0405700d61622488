"""The public JSON of plans and audit logs. Their schemas are generated from these types."""
