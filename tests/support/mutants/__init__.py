"""Mutation testing of the core: `make mutants PACKAGE=policies/rounds`.

A mutant is one file of the core with one operator flipped. Tests kill it if one of them fails. A mutant that survives
shows behaviour that no test asserts.
"""
