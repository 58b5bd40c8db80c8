"""Whether a spec can be run, and what of it is not used."""
