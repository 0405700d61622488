"""The use cases without a command line: options in, result out. This is the Python API."""
