"""The stages of the benchmark: what each measures."""
