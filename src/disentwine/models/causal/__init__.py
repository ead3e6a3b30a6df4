"""Models of labelled concepts and their causal graph."""
