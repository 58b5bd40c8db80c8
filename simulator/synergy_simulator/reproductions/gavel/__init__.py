"""Figures and tables of Gavel (OSDI 2020)."""
