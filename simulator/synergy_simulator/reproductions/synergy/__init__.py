"""Figures and tables of Synergy (OSDI 2022)."""
