"""Zones, hierarchy, distance, prior and coarsening: public data only."""
