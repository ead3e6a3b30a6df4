"""Contracts that all rooms share: data sets, models, capabilities, scores."""
