"""Samplers of batches, as functions of seed and step."""
