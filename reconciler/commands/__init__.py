"""The use cases without a command line: options in, result out."""
