"""What one snapshot leaves for the next."""
