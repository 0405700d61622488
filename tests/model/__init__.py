"""A model of the documented behaviour. Only `real` and `comparing` import what it judges."""
