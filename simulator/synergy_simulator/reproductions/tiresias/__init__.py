"""Figures and tables of Tiresias (NSDI 2019)."""
