"""Run folders: recipes, checkpoints, exact resume."""
