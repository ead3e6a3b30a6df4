"""The beta-VAE and DIP-VAE studies."""
