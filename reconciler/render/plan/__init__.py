"""The content of a plan as a document, and its text for a terminal."""
