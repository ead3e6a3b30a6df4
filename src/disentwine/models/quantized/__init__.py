"""Vector-quantized models: VQ-VAE, MCQ-VAE, CT-VAE."""
