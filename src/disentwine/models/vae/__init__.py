"""Variational autoencoders with one layer of Gaussian latents."""
