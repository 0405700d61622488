"""The operations of the resources, one file for each."""
