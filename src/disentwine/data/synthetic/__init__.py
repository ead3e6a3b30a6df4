"""Simulators that render their images and know their true graph."""
