"""Brings the CustomResourceDefinitions to the version of this image and makes the default policy where there is none.

The chart's Job runs it before each install and upgrade: Helm never changes definitions that are there.
"""
