"""The CT-VAE study."""
