"""The CausalVAE, CausalWAE and few-labels studies."""
