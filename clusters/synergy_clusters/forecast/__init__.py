"""When jobs would start in each worker cluster: the extender's view of it, and the simulator."""
