"""GPUs that several jobs share: devices, partners, and the order in which they come."""
