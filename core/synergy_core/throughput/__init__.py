"""What each job is worth where: its speed for any CPU and memory, on each GPU type, spread or consolidated."""
