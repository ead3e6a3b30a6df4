"""Ladder and hierarchical VAEs."""
