"""Areas: some zones of a release, by their ids, by a shape, or by their distance from something."""
