"""`status`: show the state of exports, the worst first."""
