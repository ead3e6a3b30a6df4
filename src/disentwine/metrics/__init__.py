"""Pure functions of arrays that answer with a score."""
