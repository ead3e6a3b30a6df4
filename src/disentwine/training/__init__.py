"""The loop of updates; knows no folder and no particular model."""
