"""GPU counters: how busy the multiprocessors and the memory were, which utilisation bounds from above only."""
