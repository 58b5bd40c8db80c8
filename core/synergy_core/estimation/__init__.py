"""Throughputs that were never measured, from those of reference jobs that were (Gavel, sections 3.3 and 6, figure 8).

a few measurements ──▶ matrix completion ──▶ fingerprint ──▶ nearest reference job ──▶ its throughputs
"""
