"""The only readers of job records. Nothing that serves may import this."""
