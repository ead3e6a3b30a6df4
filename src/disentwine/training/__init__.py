"""Fitting models: seeds, checkpoints, exact resume, logs, progress, and the run folder."""
