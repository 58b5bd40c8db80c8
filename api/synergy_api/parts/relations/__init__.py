"""How a job stands to others: it waits for jobs, makes many of itself, or starts and stops another object."""
