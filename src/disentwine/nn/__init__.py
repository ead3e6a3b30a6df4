"""Network modules: encoders, decoders, mechanisms, quantizer, transition layer."""
