"""The HTTP service over published releases. It never imports or reads what is confidential."""
