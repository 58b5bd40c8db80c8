"""Mutation testing of a package: `make mutants PACKAGE=policies/rounds`.

A mutant is one file of the package with one operator flipped. Tests kill it if one of them fails. A mutant that
survives shows behaviour that no test asserts.
"""
