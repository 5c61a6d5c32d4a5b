"""Compiled kernels: arrays in, arrays out, the random stream passed in."""
