"""Loss terms as functions of tensors, one value a sample; they know no model."""
