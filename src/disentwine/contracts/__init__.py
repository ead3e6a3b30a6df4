"""What a data set, a model and a metric promise; one small module each."""
