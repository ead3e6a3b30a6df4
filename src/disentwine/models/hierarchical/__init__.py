"""Hierarchical VAEs."""
