"""`apply`: apply a plan after showing it."""
