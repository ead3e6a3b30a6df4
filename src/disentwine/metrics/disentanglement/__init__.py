"""Metrics of latents against ground-truth factors."""
