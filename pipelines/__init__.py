"""The Dask pipeline from a confidential table to a published release."""
