"""`doctor`: check the set-up."""
