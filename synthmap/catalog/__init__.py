"""The catalog: jobs, keys and datasets in one database. The service and the worker meet here and nowhere else."""
