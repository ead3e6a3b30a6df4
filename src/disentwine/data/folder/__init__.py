"""A folder of images and a table of concepts."""
