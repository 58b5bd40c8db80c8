"""Packing jobs on the nodes of a GPU type: what is packed where, and what lasts from the round before."""
