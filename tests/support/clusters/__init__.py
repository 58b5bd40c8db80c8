"""A hub and its worker clusters in memory."""
