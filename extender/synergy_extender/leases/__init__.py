"""What a worker hears when it reports, and what becomes of its report."""
