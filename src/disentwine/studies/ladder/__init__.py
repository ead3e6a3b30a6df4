"""The Ladder VAE study."""
