"""Loss terms, as functions of tensors."""
