"""A soak: hours of the product's own processes on fake nodes, with jobs that come and go and parts that fail."""
