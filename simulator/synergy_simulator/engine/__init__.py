"""The simulation: rounds planned by the core, runs that progress, profiling and sharing."""
