"""Results of the MPS co-location thesis."""
