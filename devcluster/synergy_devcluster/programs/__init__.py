"""The programs of a devcluster: which versions, how they are built, what they need, and their processes."""
