"""GPUs that several jobs have together: devices, partners, and the order in which they come."""
