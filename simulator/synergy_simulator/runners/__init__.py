"""Where many independent simulations run: on this machine's processes, or on the workers of a Dask cluster."""
