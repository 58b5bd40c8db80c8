"""What goes wrong and how: faults of processes, links, clocks and of writes that are refused."""
