"""OnTheMap's analyses of areas on the published table, each figure with its expected error."""
