"""Pure maths of the guarantee: no data, no I/O, no randomness. Proofs lie in ``proofs/``."""
