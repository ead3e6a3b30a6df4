"""Which images make a batch, as a function of seed and step."""
