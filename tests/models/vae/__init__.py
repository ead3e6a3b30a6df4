"""A package, so that its tests can import their helpers."""
