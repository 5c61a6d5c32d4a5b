"""What a worker does for one job, in a process of its own: one file a process of the service."""
