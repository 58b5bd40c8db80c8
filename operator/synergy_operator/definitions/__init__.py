"""Updates the CustomResourceDefinitions to this image's version, and creates the default policy if there is none.

The chart's Job runs it before each install and upgrade, because Helm never changes existing definitions.
"""
