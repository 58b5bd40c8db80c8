"""What the simulator reads: traces, profiles, clusters. Bad input is an InputError that names file, line and field."""
