"""When jobs will start: the simulator in a process of its own, and how right it was."""
