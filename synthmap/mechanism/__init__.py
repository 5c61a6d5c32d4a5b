"""Plan (cells, noise, keep probability) and synthesis: randomised maps with a stated loss."""
